"""Tasks: each joins a model and its preprocessor, so that it reads raw data and returns answers.

A class is imported when it is first used (PEP 562).
"""

from typing import TYPE_CHECKING

from keras_attention.core.lazy import make_getattr

if TYPE_CHECKING:
    from keras_attention.tasks.causal_lm import CausalLM
    from keras_attention.tasks.constituency_parser import ConstituencyParser
    from keras_attention.tasks.dependency_parser import DependencyParser
    from keras_attention.tasks.image_classifier import ImageClassifier
    from keras_attention.tasks.image_generator import ImageGenerator
    from keras_attention.tasks.image_text_matcher import FoundImage, ImageTextMatcher
    from keras_attention.tasks.image_to_text import ImageToText
    from keras_attention.tasks.masked_lm import MaskedLM
    from keras_attention.tasks.multi_label_classifier import MultiLabelClassifier
    from keras_attention.tasks.object_detector import FoundObject, ObjectDetector
    from keras_attention.tasks.opening import from_preset
    from keras_attention.tasks.presets import list_presets
    from keras_attention.tasks.question_answerer import QuestionAnswerer
    from keras_attention.tasks.seq2seq_lm import Seq2SeqLM
    from keras_attention.tasks.sequence_labeler import SequenceLabeler
    from keras_attention.tasks.speech_recognizer import SpeechRecognizer
    from keras_attention.tasks.speech_to_text import SpeechToText
    from keras_attention.tasks.task import Task
    from keras_attention.tasks.text_classifier import TextClassifier
    from keras_attention.tasks.text_embedder import FoundText, TextEmbedder
    from keras_attention.tasks.transcript import Segment, Transcript, Word
    from keras_attention.tasks.writing import Writing

__all__ = [
    "CausalLM",
    "ConstituencyParser",
    "DependencyParser",
    "FoundImage",
    "FoundObject",
    "FoundText",
    "ImageClassifier",
    "ImageGenerator",
    "ImageTextMatcher",
    "ImageToText",
    "MaskedLM",
    "MultiLabelClassifier",
    "ObjectDetector",
    "QuestionAnswerer",
    "Segment",
    "Seq2SeqLM",
    "SequenceLabeler",
    "SpeechRecognizer",
    "SpeechToText",
    "Task",
    "TextClassifier",
    "TextEmbedder",
    "Transcript",
    "Word",
    "Writing",
    "from_preset",
    "list_presets",
]

_MODULES = {
    "CausalLM": "causal_lm",
    "ConstituencyParser": "constituency_parser",
    "DependencyParser": "dependency_parser",
    "FoundImage": "image_text_matcher",
    "FoundObject": "object_detector",
    "FoundText": "text_embedder",
    "ImageClassifier": "image_classifier",
    "ImageGenerator": "image_generator",
    "ImageTextMatcher": "image_text_matcher",
    "ImageToText": "image_to_text",
    "MaskedLM": "masked_lm",
    "MultiLabelClassifier": "multi_label_classifier",
    "ObjectDetector": "object_detector",
    "QuestionAnswerer": "question_answerer",
    "Segment": "transcript",
    "Seq2SeqLM": "seq2seq_lm",
    "SequenceLabeler": "sequence_labeler",
    "SpeechRecognizer": "speech_recognizer",
    "SpeechToText": "speech_to_text",
    "Task": "task",
    "TextClassifier": "text_classifier",
    "TextEmbedder": "text_embedder",
    "Transcript": "transcript",
    "Word": "transcript",
    "Writing": "writing",
    "from_preset": "opening",
    "list_presets": "presets",
}

__getattr__ = make_getattr(__name__, _MODULES)


def __dir__():
    return sorted({*globals(), *__all__})
