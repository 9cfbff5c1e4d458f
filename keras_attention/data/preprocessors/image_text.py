"""`ImageTextPreprocessor`: pictures to the inputs of an encoder-decoder, and its ids to texts."""

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
    """Turns pictures into the inputs of `ka.models.image_to_sequence`, texts into ids and back.

    Args:
        target: `Characters`, `Words` or `Subwords`, of what the model writes.
        image_size: int or (height, width) in pixels, to which a picture is resized.
        channels: int, 1 for grey or 3 for RGB.
        resizing: `Resizing`, how pictures become of this size.

    Calling it on a list of paths, of bytes of files, or of arrays (H, W, C) of any size, uint8 or
    floats from 0 to 1, gives `"images"` float32 (B, height, width, channels) from 0 to 1.

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
        """Return `Columns` of a list of `CaptionedImage`, each picture with each of its texts.

        Inputs are `"images"`, float32 (B, H, W, C) from 0 to 1, and `"target_ids"`, int32 (B, U),
        from BEGIN on. Labels are int32 (B, U), the token that follows, -1 at padding. U is that of
        the longest text of all.
        """
        pairs = [(k, text) for k, example in enumerate(examples) for text in example.texts]
        pictures = [example.image for example in examples]
        ids = self.target_ids([text for _, text in pairs])
        inputs = {
            "images": self.compute_images(pictures, np.array([k for k, _ in pairs])),
            "target_ids": pad_rows([row[:-1] for row in ids], self.padding_id),
        }
        return Columns(inputs, pad_rows([row[1:] for row in ids], -1), count=len(pairs))
