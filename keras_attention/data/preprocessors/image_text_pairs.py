"""`ImageTextPairPreprocessor`: converts images and texts to the inputs of two encoders."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, pad_rows
from keras_attention.data.preprocessors.pictures import PictureOwner
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.preprocessors.text import LENGTH, TextReader, build_vocabulary
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.vocabulary import Vocabulary
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors


@dataclasses.dataclass(frozen=True)
class ImageTextPairPreprocessor(TextReader, PictureOwner):
    """Converts images and strings to the inputs of an image encoder and a text encoder, in NumPy.

    `read_images` converts a list of images to float32 (B, H, W, C) from 0 to 1. Call the object on
    a list of strings to get the token ids, int32 (B, T), padded at the end. `ka.data.batches` makes
    batches of `CaptionedImage`, with the inputs `"images"` and `"token_ids"`. The labels are the
    numbers of images and texts that `ka.training.InfoNCE` reads.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a checkpoint's model.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        resizing: `Resizing` that resizes images to `image_size`.
        maximum_length: int, the number of tokens that the model reads from the start of a string.
            The rest is cut off. None uses the limit of a `PretrainedTokenizer`, or 512 words for a
            `Vocabulary`.
        pad_to_maximum: bool, whether all texts are padded to `maximum_length`, for a model that
            reads its vector at the last position, such as SigLIP.

    ```python
    import numpy as np
    import keras_attention as ka

    examples = [
        ka.data.CaptionedImage(np.zeros((8, 8, 3), "uint8"), ("a night", "dark")),
        ka.data.CaptionedImage(np.full((8, 8, 3), 255, "uint8"), ("a day",)),
    ]
    preprocessor = ka.data.ImageTextPairPreprocessor.build(examples, image_size=(4, 4))
    assert preprocessor(["a day", "a"])[1].tolist() == [2, 0]
    assert preprocessor.read_images([examples[1].image]).shape == (1, 4, 4, 3)
    ((inputs, numbers),) = ka.data.batches(examples, preprocessor)
    assert list(inputs) == ["images", "token_ids"]
    assert numbers.numpy().tolist() == [[0, 0], [0, 1], [1, 2]]
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    image_size: tuple
    channels: int = 3
    resizing: Resizing = Resizing()
    maximum_length: int | None = None
    pad_to_maximum: bool = False
    kind = "image_text_pairs"

    def __post_init__(self):
        self.check_sizes()
        self.resizing.check_image_size(self.image_size)
        self.set_length()
        if self.pad_to_maximum and self.maximum_length is None:
            raise ValueError(
                f"{type(self).__name__}(pad_to_maximum=True, maximum_length=None): expected the "
                "number of tokens to pad to. Set maximum_length."
            )

    @classmethod
    def build(
        cls,
        train,
        image_size,
        channels=3,
        *,
        min_count=1,
        max_size=None,
        lowercase=False,
        maximum_length=LENGTH,
    ):
        """Make a preprocessor whose vocabulary is collected from training examples.

        Args:
            train: list of `CaptionedImage`, only the training split.
            image_size, channels: as in the constructor.
            min_count: int. Words that occur less often are treated as unknown.
            max_size: int, the maximum number of word ids, including padding. None for no limit.
            lowercase: bool, whether to ignore case.
            maximum_length: int, the number of words that the model reads from the start of a
                string.
        """
        options = {"min_count": min_count, "max_size": max_size, "lowercase": lowercase}
        texts = [text for example in train for text in example.texts]
        vocabulary = build_vocabulary(texts, maximum_length, **options)
        return cls(vocabulary, image_size, channels, maximum_length=maximum_length)

    @property
    def padded_length(self):
        """int, the length of all rows of token ids, or None for the length of the longest."""
        return self.maximum_length if self.pad_to_maximum else None

    def __call__(self, texts):
        return super().__call__(texts, self.padded_length)

    def read_images(self, pictures):
        """Convert a list of images to model inputs, float32 (B, H, W, C) from 0 to 1.

        An image is a path, the bytes of a file, or an array (H, W, C) of any size, uint8 or floats
        from 0 to 1.
        """
        return np.stack([self.read(picture)[0] for picture in pictures])

    def columns(self, examples):
        """Convert a list of `CaptionedImage` to `Columns` for `ka.data.batches`.

        Each caption of an image is a row of its own. The labels are int32 (B, 2), the numbers of
        the image and the caption. Equal captions have equal numbers. T is the length of the longest
        caption in the whole list.
        """
        pairs = [(k, text) for k, example in enumerate(examples) for text in example.texts]
        texts = [text for _, text in pairs]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        of_examples = np.array([k for k, _ in pairs])
        rows = list(number_errors("Text", texts, self.ids))
        inputs = {
            "images": self.compute_images([one.image for one in examples], of_examples),
            "token_ids": pad_rows(rows, self.padding_id, self.padded_length),
        }
        labels = np.array([(k, numbers[text]) for k, text in pairs], "int32")
        return Columns(inputs, labels, count=len(pairs))

    def config(self):
        return super().config() | {"padded_length": self.padded_length}

    @classmethod
    def load(cls, folder, **sizes):
        """Load a preprocessor from the files that `save` wrote into `folder`.

        `sizes` are the arguments `image_size`, `channels` and `resizing`, which a task stores in
        `manifest.json`.
        """
        config, tokenizer, length = cls.load_reader(folder)
        padded = config.whole("padded_length", most=MOST_TOKENS, default=None)
        if padded is not None:
            length = padded
        return cls(tokenizer, maximum_length=length, pad_to_maximum=padded is not None, **sizes)
