"""Printed answers of `predict`: a table or lines for each kind of task."""

import numpy as np

from keras_attention.cli.printing import say, show_table
from keras_attention.export.card import MOST_ERRORS, format_class
from keras_attention.export.checks.formatting import format_percent
from keras_attention.training.scores.class_scores import ClassScores

SHOWN = 60  # characters of a text beside its label
CLASSES = 3  # of a picture
SHADES = " ░▒▓█"  # a pixel in a terminal, two columns wide


def show(task, inputs, options):
    """Print the answers of a task.

    Args:
        task: a `ka.tasks.Task`.
        inputs: list of raw inputs.
        options: dict, keywords of `task.predict`.
    """
    BY_TASK.get(task.builder, _show_lines)(task, inputs, **options)


def shows_blocks(task):
    """Return whether each input gets several lines, with an empty line between two inputs."""
    return BY_TASK.get(task.builder) in BLOCKS


def shorten(text):
    """Return the beginning of a text, for a table."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def show_classes(scores):
    """Print the scores of each class, where `scores` have them, and the most frequent errors."""
    if not isinstance(scores, ClassScores):
        return
    rows = [format_class(*item) for item in scores.classes.items()]
    show_table(("class", "precision", "recall", "F1", "count"), rows, title="Classes")
    if pairs := scores.list_errors()[:MOST_ERRORS]:
        show_table(("class", "taken for", "count", "of"), pairs, title="Most frequent errors")


def _separate(answers):
    """Yield the answers, and print an empty line before each but the first."""
    for k, answer in enumerate(answers):
        if k:
            say("")
        yield answer


def _show_lines(task, inputs, **options):
    for answer in task.predict(inputs, **options):
        say(str(answer))


def _show_continuations(task, inputs, **options):
    """Print each text and its continuation, token by token."""
    for text, pieces in _separate(zip(inputs, task.stream(inputs, **options), strict=True)):
        print(text, end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
        say("")


def _show_dependencies(task, inputs):
    for words in _separate(task.predict(inputs)):
        names = ["<root>", *(word.token for word in words)]
        rows = [
            (str(number), word.token, word.relation, f"{word.head} {names[word.head]}",
             format_percent(word.probability))
            for number, word in enumerate(words, start=1)
        ]  # fmt: skip
        show_table(("", "word", "relation", "head", "probability"), rows)


def _show_classes(task, inputs, *, top=CLASSES, **options):
    answers = task.predict(inputs, top=top, **options)
    for path, classes in _separate(zip(inputs, answers, strict=True)):
        rows = [(label, format_percent(share)) for label, share in classes]
        show_table(("class", "probability"), rows, title=path)


def _show_pictures(task, inputs, **options):
    """Print the pictures, in shades that a terminal has."""
    for label, picture in _separate(zip(inputs, task.draw(inputs, **options), strict=True)):
        say(f"{label}:")
        shades = np.rint(picture.mean(axis=-1) / 255 * (len(SHADES) - 1)).astype(int)
        for row in shades:
            say("".join(2 * SHADES[i] for i in row).rstrip() or " ")


def _show_candidates(task, inputs, **options):
    masks = (mask for text in task.predict(inputs, **options) for mask in text)
    for candidates in _separate(masks):
        rows = [(token, format_percent(share)) for token, share in candidates]
        show_table(("token", "probability"), rows)


def _show_any_labels(task, inputs, *, top=None):
    rows = []
    for text, labels in zip(inputs, task.predict(inputs, top=top), strict=True):
        named = [(label, format_percent(share)) for label, share in labels]
        rows += [(*pair, shorten(text)) for pair in named or [("(no label)", "-")]]
    show_table(("label", "probability", "text"), rows)


def _show_labels(task, inputs, *, top=1):
    rows = []
    for text, labels in zip(inputs, task.predict(inputs, top=top), strict=True):
        rows += [(label, format_percent(share), shorten(text)) for label, share in labels]
    show_table(("label", "probability", "text"), rows)


def _show_objects(task, inputs, **options):
    answers = task.predict(inputs, **options)
    for path, objects in _separate(zip(inputs, answers, strict=True)):
        rows = [
            (one.label, format_percent(one.score), *(f"{x:.0f}" for x in one.box))
            for one in objects
        ]
        show_table(("class", "score", "left", "top", "right", "bottom"), rows, title=path)


def _show_answers(task, inputs):
    rows = []
    for (question, _), answer in zip(inputs, task.predict(inputs), strict=True):
        place = "-" if answer.start is None else f"{answer.start}-{answer.end}"
        text = answer.answer or "(no answer)"
        rows.append((text, format_percent(answer.probability), place, question))
    show_table(("answer", "probability", "characters", "question"), rows)


def _show_tags(task, inputs, *, group_entities=False):
    names = ("entity", "label") if group_entities else ("token", "tag")
    for words in _separate(task.predict(inputs, group_entities=group_entities)):
        rows = [(*row[:2], format_percent(row.probability)) for row in words]
        show_table((*names, "probability"), rows)


def _show_captions(task, inputs, **options):
    texts = task.predict(inputs, **options)
    show_table(("picture", "text"), list(zip(inputs, texts, strict=True)))


def _show_transcripts(task, inputs, **options):
    texts = task.predict(inputs, **options)
    show_table(("recording", "text"), list(zip(inputs, texts, strict=True)))


BY_TASK = {
    "causal_language_model": _show_continuations,
    "dependency_parser": _show_dependencies,
    "image_generator": _show_pictures,
    "image_to_sequence": _show_captions,
    "masked_language_model": _show_candidates,
    "multi_label_classifier": _show_any_labels,
    "object_detector": _show_objects,
    "question_answerer": _show_answers,
    "sequence_labeler": _show_tags,
    "speech_recognizer": _show_transcripts,
    "speech_to_text": _show_transcripts,
    "text_classifier": _show_labels,
    "vision_transformer": _show_classes,
}
BLOCKS = (
    _show_continuations,
    _show_dependencies,
    _show_pictures,
    _show_candidates,
    _show_objects,
    _show_tags,
    _show_classes,
)
