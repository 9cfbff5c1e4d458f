"""Losses, metrics, schedules and callbacks for training with padding, beside Keras's own."""

from typing import TYPE_CHECKING

from keras_attention.core.lazy import make_getattr

if TYPE_CHECKING:
    from keras_attention.training.adamw import AdamW
    from keras_attention.training.answer_spans import SpanCrossentropy, SpanF1
    from keras_attention.training.box_overlap import compute_overlaps
    from keras_attention.training.chunked_logits import ChunkedLogits
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
    from keras_attention.training.fine_tuning import (
        LayerwiseAdamW,
        enable_lora,
        freeze,
        layer_rates,
        merge_lora,
        unfreeze,
    )
    from keras_attention.training.hungarian import HungarianLoss, match_objects
    from keras_attention.training.joint_model import JointModel
    from keras_attention.training.losses import MaskedSparseCategoricalCrossentropy
    from keras_attention.training.metrics import (
        MaskedPerplexity,
        MaskedSequenceAccuracy,
        MaskedSparseCategoricalAccuracy,
    )
    from keras_attention.training.multi_label import MacroF1, MultiLabelCrossentropy
    from keras_attention.training.precision import fastest_dtype_policy
    from keras_attention.training.replicas import merge_metrics
    from keras_attention.training.reset_memory import ResetMemory
    from keras_attention.training.scheduled_sampling import (
        ConstantForcing,
        ExponentialForcing,
        InverseSigmoidForcing,
        LinearForcing,
        ScheduledSampling,
    )
    from keras_attention.training.schedules import Noam, warmup_cosine
    from keras_attention.training.scores.answers import (
        compute_answer_f1,
        compute_exact_match,
        score_answers,
    )
    from keras_attention.training.scores.box_average_precision import BoxAveragePrecision
    from keras_attention.training.scores.boxes import score_boxes
    from keras_attention.training.scores.brackets import score_brackets
    from keras_attention.training.scores.class_f1 import ClassF1
    from keras_attention.training.scores.diversity import (
        compute_distinct,
        compute_repetition,
        score_diversity,
    )
    from keras_attention.training.scores.entity_f1 import EntityF1, EntityPrecision, EntityRecall
    from keras_attention.training.scores.label_sets import find_label_thresholds, score_label_sets
    from keras_attention.training.scores.texts import (
        compute_character_error_rate,
        compute_word_error_rate,
        score_translations,
    )
    from keras_attention.training.two_passes import TwoPasses, with_two_passes

__all__ = [
    "AdamW",
    "BoxAveragePrecision",
    "CTCAttention",
    "CTCTranscriptAccuracy",
    "ChunkedLogits",
    "ClassF1",
    "ConstantForcing",
    "DecoderAccuracy",
    "DecoderSequenceAccuracy",
    "DependencyCrossentropy",
    "EntityF1",
    "EntityPrecision",
    "EntityRecall",
    "ExponentialForcing",
    "HungarianLoss",
    "InverseSigmoidForcing",
    "JointModel",
    "LabeledAttachment",
    "LayerwiseAdamW",
    "LinearForcing",
    "MacroF1",
    "MaskedCTC",
    "MaskedPerplexity",
    "MaskedSequenceAccuracy",
    "MaskedSparseCategoricalAccuracy",
    "MaskedSparseCategoricalCrossentropy",
    "MultiLabelCrossentropy",
    "Noam",
    "ResetMemory",
    "ScheduledSampling",
    "SpanCrossentropy",
    "SpanF1",
    "TwoPasses",
    "UnlabeledAttachment",
    "compute_answer_f1",
    "compute_character_error_rate",
    "compute_distinct",
    "compute_exact_match",
    "compute_overlaps",
    "compute_repetition",
    "compute_word_error_rate",
    "enable_lora",
    "fastest_dtype_policy",
    "find_label_thresholds",
    "freeze",
    "layer_rates",
    "match_objects",
    "merge_lora",
    "merge_metrics",
    "score_answers",
    "score_boxes",
    "score_brackets",
    "score_diversity",
    "score_label_sets",
    "score_translations",
    "unfreeze",
    "warmup_cosine",
    "with_two_passes",
]

_MODULES = {
    "AdamW": "adamw",
    "BoxAveragePrecision": "scores.box_average_precision",
    "CTCAttention": "ctc_attention",
    "CTCTranscriptAccuracy": "ctc",
    "ChunkedLogits": "chunked_logits",
    "ClassF1": "scores.class_f1",
    "ConstantForcing": "scheduled_sampling",
    "DecoderAccuracy": "ctc_attention",
    "DecoderSequenceAccuracy": "ctc_attention",
    "DependencyCrossentropy": "dependencies",
    "EntityF1": "scores.entity_f1",
    "EntityPrecision": "scores.entity_f1",
    "EntityRecall": "scores.entity_f1",
    "ExponentialForcing": "scheduled_sampling",
    "HungarianLoss": "hungarian",
    "InverseSigmoidForcing": "scheduled_sampling",
    "JointModel": "joint_model",
    "LabeledAttachment": "dependencies",
    "LayerwiseAdamW": "fine_tuning",
    "LinearForcing": "scheduled_sampling",
    "MacroF1": "multi_label",
    "MaskedCTC": "ctc",
    "MaskedPerplexity": "metrics",
    "MaskedSequenceAccuracy": "metrics",
    "MaskedSparseCategoricalAccuracy": "metrics",
    "MaskedSparseCategoricalCrossentropy": "losses",
    "MultiLabelCrossentropy": "multi_label",
    "Noam": "schedules",
    "ResetMemory": "reset_memory",
    "ScheduledSampling": "scheduled_sampling",
    "SpanCrossentropy": "answer_spans",
    "SpanF1": "answer_spans",
    "TwoPasses": "two_passes",
    "UnlabeledAttachment": "dependencies",
    "compute_answer_f1": "scores.answers",
    "compute_character_error_rate": "scores.texts",
    "compute_distinct": "scores.diversity",
    "compute_exact_match": "scores.answers",
    "compute_overlaps": "box_overlap",
    "compute_repetition": "scores.diversity",
    "compute_word_error_rate": "scores.texts",
    "enable_lora": "fine_tuning",
    "fastest_dtype_policy": "precision",
    "find_label_thresholds": "scores.label_sets",
    "freeze": "fine_tuning",
    "layer_rates": "fine_tuning",
    "match_objects": "hungarian",
    "merge_lora": "fine_tuning",
    "merge_metrics": "replicas",
    "score_answers": "scores.answers",
    "score_boxes": "scores.boxes",
    "score_brackets": "scores.brackets",
    "score_diversity": "scores.diversity",
    "score_label_sets": "scores.label_sets",
    "score_translations": "scores.texts",
    "unfreeze": "fine_tuning",
    "warmup_cosine": "schedules",
    "with_two_passes": "two_passes",
}

__getattr__ = make_getattr(__name__, _MODULES)


def __dir__():
    return sorted({*globals(), *__all__})
