"""Functions that load published checkpoints as Keras models of this package, and save them."""

from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.loading import Description, describe, load
from keras_attention.pretrained.saving import save
from keras_attention.pretrained.tokenization import tokenizer

__all__ = ["CheckpointError", "Description", "describe", "load", "save", "tokenizer"]
