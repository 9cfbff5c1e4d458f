"""The classes of tasks by the names of their builders: a new task is a file, and a line here."""

import importlib

TASKS = {
    "causal_language_model": "causal_lm.CausalLM",
    "dependency_parser": "dependency_parser.DependencyParser",
    "masked_language_model": "masked_lm.MaskedLM",
    "question_answerer": "question_answerer.QuestionAnswerer",
    "seq2seq_recurrent": "seq2seq_lm.Seq2SeqLM",
    "seq2seq_transformer": "seq2seq_lm.Seq2SeqLM",
    "sequence_labeler": "sequence_labeler.SequenceLabeler",
    "speech_recognizer": "speech_recognizer.SpeechRecognizer",
    "speech_to_text": "speech_to_text.SpeechToText",
    "text_classifier": "text_classifier.TextClassifier",
    "vision_transformer": "image_classifier.ImageClassifier",
}


def get_task_class(builder):
    """The class of the task whose models `builder` makes, a name in `TASKS`."""
    module, name = TASKS[builder].split(".")
    return getattr(importlib.import_module(f"keras_attention.tasks.{module}"), name)


def find_builder(kind):
    """The first builder whose task takes data of the class `kind`, as `ka.data.Texts`; or None."""
    return next((name for name in TASKS if issubclass(kind, get_task_class(name).data_class)), None)
