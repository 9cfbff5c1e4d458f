"""Every attention, one equation: Keras layers and models that train, explain and export themselves.

Public names are the folders': `ka.scores.Cosine`, `ka.masks.Window`, `ka.models.sequence_labeler`.
To import the package registers its layers, so that `keras.models.load_model` knows them.
"""

import pathlib
import sys


def _is_command():
    """Whether this process is the command line, whose commands import what they need."""
    program = pathlib.Path(sys.argv[0]).name if sys.argv else ""
    if program == "-m":  # Python is still looking for the module that it was given
        return __name__ in sys.orig_argv[sys.orig_argv.index("-m") + 1 :][:1]
    return program in ("keras-attention", "keras-attention.exe")


if not _is_command():
    from keras_attention import (
        attention,
        blocks,
        data,
        export,
        generation,
        layers,
        masks,
        models,
        normalizers,
        positions,
        recurrent,
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
    "generation",
    "layers",
    "masks",
    "models",
    "normalizers",
    "positions",
    "recurrent",
    "scores",
    "training",
    "visualization",
]
