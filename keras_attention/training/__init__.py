"""Losses, metrics, schedules and callbacks for training with padding, beside Keras's own."""

from keras_attention.training.answer_scores import (
    compute_answer_f1,
    compute_exact_match,
    score_answers,
)
from keras_attention.training.answer_spans import SpanCrossentropy, SpanF1
from keras_attention.training.ctc import CTCTranscriptAccuracy, MaskedCTC
from keras_attention.training.ctc_attention import (
    CTCAttention,
    DecoderAccuracy,
    DecoderSequenceAccuracy,
)
from keras_attention.training.dependencies import (
    DependencyCrossentropy,
    LabeledAttachment,
    UnlabeledAttachment,
)
from keras_attention.training.entity_f1 import EntityF1, EntityPrecision, EntityRecall
from keras_attention.training.error_rates import (
    compute_character_error_rate,
    compute_word_error_rate,
)
from keras_attention.training.fine_tuning import (
    LayerwiseAdamW,
    enable_lora,
    freeze,
    layer_rates,
    merge_lora,
    unfreeze,
)
from keras_attention.training.joint_model import JointModel
from keras_attention.training.losses import MaskedSparseCategoricalCrossentropy
from keras_attention.training.metrics import (
    MaskedPerplexity,
    MaskedSequenceAccuracy,
    MaskedSparseCategoricalAccuracy,
)
from keras_attention.training.precision import fastest_dtype_policy
from keras_attention.training.reset_memory import ResetMemory
from keras_attention.training.scheduled_sampling import (
    ConstantForcing,
    ExponentialForcing,
    InverseSigmoidForcing,
    LinearForcing,
    ScheduledSampling,
)
from keras_attention.training.schedules import Noam, warmup_cosine
from keras_attention.training.translation_scores import score_translations
from keras_attention.training.two_passes import TwoPasses, with_two_passes

__all__ = [
    "CTCAttention",
    "CTCTranscriptAccuracy",
    "ConstantForcing",
    "DecoderAccuracy",
    "DecoderSequenceAccuracy",
    "DependencyCrossentropy",
    "EntityF1",
    "EntityPrecision",
    "EntityRecall",
    "ExponentialForcing",
    "InverseSigmoidForcing",
    "JointModel",
    "LabeledAttachment",
    "LayerwiseAdamW",
    "LinearForcing",
    "MaskedCTC",
    "MaskedPerplexity",
    "MaskedSequenceAccuracy",
    "MaskedSparseCategoricalAccuracy",
    "MaskedSparseCategoricalCrossentropy",
    "Noam",
    "ResetMemory",
    "ScheduledSampling",
    "SpanCrossentropy",
    "SpanF1",
    "TwoPasses",
    "UnlabeledAttachment",
    "compute_answer_f1",
    "compute_exact_match",
    "compute_character_error_rate",
    "compute_word_error_rate",
    "enable_lora",
    "fastest_dtype_policy",
    "freeze",
    "layer_rates",
    "merge_lora",
    "score_answers",
    "score_translations",
    "unfreeze",
    "warmup_cosine",
    "with_two_passes",
]
