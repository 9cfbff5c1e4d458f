"""Every attention, one equation: Keras layers and models that train, explain and export themselves.

Public names are the folders': `ka.scores.Cosine`, `ka.masks.Window`, `ka.models.sequence_labeler`.
To import the package registers its layers, so that `keras.models.load_model` knows them.
"""

from keras_attention import (
    attention,
    blocks,
    data,
    export,
    layers,
    masks,
    models,
    normalizers,
    positions,
    scores,
    training,
    visualization,
)

__version__ = "0.1.0"

__all__ = [
    "attention",
    "blocks",
    "data",
    "export",
    "layers",
    "masks",
    "models",
    "normalizers",
    "positions",
    "scores",
    "training",
    "visualization",
]
