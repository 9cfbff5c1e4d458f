"""What training needs beside Keras's own: losses and metrics with padding, schedules, precision."""

from keras_attention.training.entity_f1 import EntityF1, EntityPrecision, EntityRecall
from keras_attention.training.masked_accuracy import MaskedSparseCategoricalAccuracy
from keras_attention.training.masked_crossentropy import MaskedSparseCategoricalCrossentropy
from keras_attention.training.precision import fastest_dtype_policy
from keras_attention.training.reset_memory import ResetMemory
from keras_attention.training.schedules import Noam, warmup_cosine

__all__ = [
    "EntityF1",
    "EntityPrecision",
    "EntityRecall",
    "MaskedSparseCategoricalAccuracy",
    "MaskedSparseCategoricalCrossentropy",
    "Noam",
    "ResetMemory",
    "fastest_dtype_policy",
    "warmup_cosine",
]
