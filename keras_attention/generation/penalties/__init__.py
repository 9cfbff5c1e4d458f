"""Penalties: what makes tokens less probable than the model says. `penalty(logits, written)`."""

from keras_attention.generation.penalties.base import Penalty, get
from keras_attention.generation.penalties.frequency import Frequency
from keras_attention.generation.penalties.repetition import Repetition

__all__ = ["Frequency", "Penalty", "Repetition", "get"]
