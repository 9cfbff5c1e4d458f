"""Recipes of tasks whose inputs or outputs are images."""

import dataclasses

from keras_attention.tasks.recipes.kinds import (
    BoxData,
    CaptionData,
    ImageData,
    MatchedImageData,
    PixelData,
)
from keras_attention.tasks.recipes.recipe import Recipe, fine_tune, size

# A vision transformer with a convolutional stem, which needs fewer training images.
STEMMED = size(4, 4, 128, 256) | dict(
    patch_size=1, embedding=dict(stem_filters=(32, 64, 128)), pooling="mean"
)

FOLDERS = Recipe(model=STEMMED, epochs=30, batch_size=32, learning_rate=1e-3, data=ImageData())
GENERATOR = Recipe(
    model=size(4, 4, 128, 512) | dict(dropout=0.2),
    epochs=40,
    batch_size=32,
    learning_rate=2e-3,
    weight_decay=0.1,
    label_smoothing=0.0,
    average=2.0,
    data=PixelData(),
)

RECIPES = {
    "vision_transformer/pretrained": fine_tune(3, 16, 1e-4, ImageData(shift=0.0)),
    "vision_transformer": Recipe(
        model=size(4, 4, 96, 192) | dict(patch_size=4, dropout=0.1),
        epochs=20,
        batch_size=128,
        learning_rate=1e-3,
        data=ImageData(),
    ),
    # For images in class folders, which are resized to 48 x 48.
    "vision_transformer/files": FOLDERS,
    "vision_transformer/fashion_mnist": dataclasses.replace(
        FOLDERS, epochs=12, batch_size=128, learning_rate=1.5e-3
    ),
    # Chosen by cross-validation on the training split.
    "vision_transformer/digits": Recipe(
        model=size(2, 4, 64, 128)
        | dict(
            patch_size=1, embedding=dict(stem_filters=(32, 64), stem_strides=(1, 2)), pooling="mean"
        ),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        # Shifts by up to 0.72 pixels, which are rounded, so that half of the images move by one.
        data=ImageData(shift=0.09, flip=False),
    ),
    # The model in `benchmarks/blood_cells.py`, with a stem of stride 16 and a query in each cell.
    "object_detector": Recipe(
        model=size(3, 4, 128, 256)
        | dict(
            embedding=dict(stem_filters=(32, 64, 128, 128)),
            patch_size=1,
            dropout=0.0,
            position="rotary_2d",  # relative, so that cells find their neighbors everywhere
            one_to_many=True,
        ),
        epochs=120,
        batch_size=4,
        learning_rate=7e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        average=1.0,
        data=BoxData(),
        jit_compile=False,  # objects are matched to queries by SciPy
    ),
    "image_to_sequence": Recipe(
        model=size(3, 4, 192, 384)
        | dict(
            embedding=dict(stem_filters=(32, 64, 128, 128)),
            patch_size=1,
            num_decoder_layers=2,
            dropout=0.1,
        ),
        epochs=30,
        batch_size=32,
        learning_rate=1e-3,
        data=CaptionData(tokens="words", max_length=None, beam=3),
    ),
    "image_text_matcher": Recipe(
        model=size(2, 4, 128, 256)
        | dict(
            patch_size=1, dropout=0.1, embedding=dict(stem_filters=(32, 64, 128)), pooling="mean"
        ),
        epochs=20,
        fewest_steps=1000,
        batch_size=64,
        learning_rate=1e-3,
        label_smoothing=0.0,
        data=MatchedImageData(min_count=1),
        jit_compile=False,  # as for text_classifier
    ),
    "image_text_matcher/pretrained": fine_tune(3, 32, 1e-5),
    "image_generator": GENERATOR,
    "image_generator/digits": dataclasses.replace(
        GENERATOR,
        model=size(3, 4, 128, 256) | dict(dropout=0.3),
        epochs=50,
        data=PixelData(num_levels=17, window=4),
    ),
}
