"""Checkpoints of Hugging Face as models of our layers: `load`, `describe`."""

from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.loading import Description, describe, load

__all__ = ["CheckpointError", "Description", "describe", "load"]
