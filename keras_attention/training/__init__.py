"""Losses, metrics, optimizers, schedules and callbacks. All of them ignore padding."""

# ruff: noqa: F401

from typing import TYPE_CHECKING

from keras_attention.core.lazy import make_getattr

if TYPE_CHECKING:
    from keras_attention.training.adamw import AdamW
    from keras_attention.training.answer_spans import SpanCrossentropy, SpanF1
    from keras_attention.training.box_overlap import compute_overlaps
    from keras_attention.training.chunked_logits import ChunkedLogits
    from keras_attention.training.contrastive import ContrastiveAccuracy, InfoNCE
    from keras_attention.training.crf import CRFLoss
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
    from keras_attention.training.scores.retrieval import score_retrieval
    from keras_attention.training.scores.texts import (
        compute_character_error_rate,
        compute_word_error_rate,
        score_translations,
    )
    from keras_attention.training.speed import SpeedReport, speed_report
    from keras_attention.training.two_passes import TwoPasses, with_two_passes

_MODULES = {
    name: module
    for module, names in {
        "adamw": "AdamW",
        "answer_spans": "SpanCrossentropy SpanF1",
        "box_overlap": "compute_overlaps",
        "chunked_logits": "ChunkedLogits",
        "contrastive": "ContrastiveAccuracy InfoNCE",
        "crf": "CRFLoss",
        "ctc": "CTCTranscriptAccuracy MaskedCTC",
        "ctc_attention": "CTCAttention DecoderAccuracy DecoderSequenceAccuracy",
        "dependencies": "DependencyCrossentropy LabeledAttachment UnlabeledAttachment",
        "fine_tuning": "LayerwiseAdamW enable_lora freeze layer_rates merge_lora unfreeze",
        "hungarian": "HungarianLoss match_objects",
        "joint_model": "JointModel",
        "losses": "MaskedSparseCategoricalCrossentropy",
        "metrics": "MaskedPerplexity MaskedSequenceAccuracy MaskedSparseCategoricalAccuracy",
        "multi_label": "MacroF1 MultiLabelCrossentropy",
        "precision": "fastest_dtype_policy",
        "replicas": "merge_metrics",
        "reset_memory": "ResetMemory",
        "scheduled_sampling": "ConstantForcing ExponentialForcing InverseSigmoidForcing "
        "LinearForcing ScheduledSampling",
        "schedules": "Noam warmup_cosine",
        "scores.answers": "compute_answer_f1 compute_exact_match score_answers",
        "scores.box_average_precision": "BoxAveragePrecision",
        "scores.boxes": "score_boxes",
        "scores.brackets": "score_brackets",
        "scores.class_f1": "ClassF1",
        "scores.diversity": "compute_distinct compute_repetition score_diversity",
        "scores.entity_f1": "EntityF1 EntityPrecision EntityRecall",
        "scores.label_sets": "find_label_thresholds score_label_sets",
        "scores.retrieval": "score_retrieval",
        "scores.texts": "compute_character_error_rate compute_word_error_rate score_translations",
        "speed": "SpeedReport speed_report",
        "two_passes": "TwoPasses with_two_passes",
    }.items()
    for name in names.split()
}

__all__ = sorted(_MODULES)
__getattr__ = make_getattr(__name__, _MODULES)


def __dir__():
    return sorted({*globals(), *__all__})
