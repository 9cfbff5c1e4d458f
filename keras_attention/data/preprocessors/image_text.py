"""`ImageTextPreprocessor`: converts images to the inputs of an encoder-decoder, and ids to text."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, pad_rows
from keras_attention.data.preprocessors.pictures import PictureOwner
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.preprocessors.sequence import TargetTexts
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.subwords import Subwords


@dataclasses.dataclass(frozen=True)
class ImageTextPreprocessor(TargetTexts, PictureOwner):
    """Converts images and captions to the inputs of `ka.models.image_to_sequence`, and ids to text.

    Call the object on a list of images to get a dict with the model input `"images"`. An image
    is a path, the bytes of a file, or an array (H, W, C) of any size, uint8 or floats from 0 to 1.

    Args:
        target: `Characters`, `Words` or `Subwords`, the tokenizer of the model's output.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        resizing: `Resizing` that resizes images to `image_size`.

    ```python
    import numpy as np
    import keras_attention as ka

    words = ka.data.Words.build(["a red cell"])
    preprocessor = ka.data.ImageTextPreprocessor(words, image_size=(4, 8))
    inputs = preprocessor([np.full((30, 50, 3), 255, "uint8")])
    assert inputs["images"].shape == (1, 4, 8, 3)
    assert preprocessor.texts(preprocessor.target_ids(["a cell"])) == ["a cell"]
    ```
    """

    target: Characters | Words | Subwords
    image_size: tuple
    channels: int = 3
    resizing: Resizing = Resizing()

    def __post_init__(self):
        self.check_sizes()
        self.resizing.check_image_size(self.image_size)

    def __call__(self, pictures):
        return {"images": np.stack([self.read(picture)[0] for picture in pictures])}

    def columns(self, examples):
        """Convert `examples`, a list of `CaptionedImage`, to `Columns` for `ka.data.batches`.

        Each caption of an image is a separate row. Inputs are `"images"`, float32 (B, H, W, C) from
        0 to 1, and `"target_ids"`, int32 (B, U), which start with the begin id. Labels are int32
        (B, U), the next ids, and -1 at padding. U is the length of the longest caption in the whole
        list.
        """
        pairs = [(k, text) for k, example in enumerate(examples) for text in example.texts]
        pictures = [example.image for example in examples]
        ids = self.target_ids([text for _, text in pairs])
        inputs = {
            "images": self.compute_images(pictures, np.array([k for k, _ in pairs])),
            "target_ids": pad_rows([row[:-1] for row in ids], self.padding_id),
        }
        return Columns(inputs, pad_rows([row[1:] for row in ids], -1), count=len(pairs))
