"""The table of task names and their classes. To add a task, add a file and a line in `TASKS`.

A task has the name of the function in `ka.models` that makes its models. If two tasks share this
function, one of them has another name, and a line in `MADE_BY`.
"""

import importlib

HUB = "hf://"  # prefix of the names of Hugging Face checkpoints
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
    "text_embedder": "text_embedder.TextEmbedder",
    "vision_transformer": "image_classifier.ImageClassifier",
    # These must follow other tasks, because `find_task_by_examples` returns the first.
    "image_generator": "image_generator.ImageGenerator",
    "image_text_matcher": "image_text_matcher.ImageTextMatcher",
}
MADE_BY = {
    "image_generator": "causal_language_model",
    "image_text_matcher": "image_encoder",
    "multi_label_classifier": "text_classifier",
    "text_embedder": "text_encoder",
}


def get_task_class(builder):
    """Import and return the class of a task. `builder` is its name, a key of `TASKS`."""
    module, name = TASKS[builder].split(".")
    return getattr(importlib.import_module(f"keras_attention.tasks.{module}"), name)


def get_builder(task):
    """Return the name of the function in `ka.models` that makes models for the task name `task`."""
    return MADE_BY.get(task, task)


def find_task_by_examples(kind):
    """Return the name of the first task for examples of the class `kind`, or None."""
    return next((name for name in TASKS if kind is get_task_class(name).example_kind), None)
