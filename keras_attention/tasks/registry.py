"""The classes of tasks by the names of their builders: a new task is a file, and a line here.

A task whose models another task's builder makes has a name of its own, and a line in `MADE_BY`.
"""

import importlib

HUB = "hf://"  # in front of an id of Hugging Face, in the place of a preset
TASKS = {
    "causal_language_model": "causal_lm.CausalLM",
    "constituency_parser": "constituency_parser.ConstituencyParser",
    "dependency_parser": "dependency_parser.DependencyParser",
    "image_to_sequence": "image_to_text.ImageToText",
    "masked_language_model": "masked_lm.MaskedLM",
    "multi_label_classifier": "multi_label_classifier.MultiLabelClassifier",
    "object_detector": "object_detector.ObjectDetector",
    "question_answerer": "question_answerer.QuestionAnswerer",
    "seq2seq_recurrent": "seq2seq_lm.Seq2SeqLM",
    "seq2seq_transformer": "seq2seq_lm.Seq2SeqLM",
    "sequence_labeler": "sequence_labeler.SequenceLabeler",
    "speech_recognizer": "speech_recognizer.SpeechRecognizer",
    "speech_to_text": "speech_to_text.SpeechToText",
    "text_classifier": "text_classifier.TextClassifier",
    "vision_transformer": "image_classifier.ImageClassifier",
    "image_generator": "image_generator.ImageGenerator",  # behind what its data are for, too
}
MADE_BY = {"image_generator": "causal_language_model", "multi_label_classifier": "text_classifier"}


def get_task_class(builder):
    """Return the class of a task, by its name in `TASKS`."""
    module, name = TASKS[builder].split(".")
    return getattr(importlib.import_module(f"keras_attention.tasks.{module}"), name)


def get_builder(task):
    """Return the name in `ka.models` of the function that makes the models of a task."""
    return MADE_BY.get(task, task)


def find_task_by_examples(kind):
    """Find the first builder whose task takes examples of the class `kind`; None without one."""
    return next((name for name in TASKS if kind is get_task_class(name).example_kind), None)
