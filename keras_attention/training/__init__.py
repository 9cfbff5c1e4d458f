"""What training needs beside Keras's own: losses and metrics with padding, schedules,
scheduled sampling, precision.
"""

from keras_attention.training.entity_f1 import EntityF1, EntityPrecision, EntityRecall
from keras_attention.training.masked_accuracy import MaskedSparseCategoricalAccuracy
from keras_attention.training.masked_crossentropy import MaskedSparseCategoricalCrossentropy
from keras_attention.training.perplexity import MaskedPerplexity
from keras_attention.training.precision import fastest_dtype_policy
from keras_attention.training.reset_memory import ResetMemory
from keras_attention.training.scheduled_sampling import ScheduledSampling
from keras_attention.training.schedules import Noam, warmup_cosine
from keras_attention.training.sequence_accuracy import MaskedSequenceAccuracy
from keras_attention.training.teacher_forcing import (
    ConstantForcing,
    ExponentialForcing,
    InverseSigmoidForcing,
    LinearForcing,
)
from keras_attention.training.two_passes import TwoPasses, with_two_passes

__all__ = [
    "ConstantForcing",
    "EntityF1",
    "EntityPrecision",
    "EntityRecall",
    "ExponentialForcing",
    "InverseSigmoidForcing",
    "LinearForcing",
    "MaskedPerplexity",
    "MaskedSequenceAccuracy",
    "MaskedSparseCategoricalAccuracy",
    "MaskedSparseCategoricalCrossentropy",
    "Noam",
    "ResetMemory",
    "ScheduledSampling",
    "TwoPasses",
    "fastest_dtype_policy",
    "warmup_cosine",
    "with_two_passes",
]
