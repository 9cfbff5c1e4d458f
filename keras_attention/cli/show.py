"""Print the predictions of the `predict` command as a table or lines, depending on the task."""

import numpy as np

from keras_attention.cli.printing import say, show_table
from keras_attention.export.card import MOST_ERRORS, format_class
from keras_attention.export.checks.formatting import format_percent
from keras_attention.training.scores.class_scores import ClassScores

SHOWN = 60  # maximum number of characters of a text in the table of labels
CLASSES = 3  # number of classes that are printed for an image
SHADES = " ░▒▓█"  # brightness levels of a pixel, which is printed as two characters


def show(task, inputs, options):
    """Print the predictions of a task for a list of inputs.

    `options` is a dict of keyword arguments of `task.predict`.
    """
    if (print_answers := BY_TASK.get(task.builder)) is not None:
        print_answers(task, inputs, **options)
        return
    for answer in task.predict(inputs, **options):
        say(str(answer))


def shows_blocks(task):
    """Return whether each prediction of a task is printed on several lines."""
    return BY_TASK.get(task.builder) in BLOCKS


def show_classes(scores):
    """Print the scores of each class and the most frequent errors, if `scores` has classes."""
    if not isinstance(scores, ClassScores):
        return
    rows = [format_class(*item) for item in scores.classes.items()]
    show_table(("class", "precision", "recall", "F1", "count"), rows, title="Classes")
    if pairs := scores.list_errors()[:MOST_ERRORS]:
        show_table(("class", "taken for", "count", "of"), pairs, title="Most frequent errors")


def _separate(answers):
    """Yield each answer of an iterable, and print an empty line before all but the first answer."""
    for k, answer in enumerate(answers):
        if k:
            say("")
        yield answer


def _show_continuations(task, inputs, **options):
    """Print each prompt and its continuation, token by token."""
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


def _show_images(task, inputs, **options):
    """Print generated images with block characters of different brightness."""
    for label, image in _separate(zip(inputs, task.draw(inputs, **options), strict=True)):
        say(f"{label}:")
        shades = np.rint(image.mean(axis=-1) / 255 * (len(SHADES) - 1)).astype(int)
        for row in shades:
            say("".join(2 * SHADES[i] for i in row).rstrip() or " ")


def _show_candidates(task, inputs, **options):
    masks = (mask for text in task.predict(inputs, **options) for mask in text)
    for candidates in _separate(masks):
        rows = [(token, format_percent(share)) for token, share in candidates]
        show_table(("token", "probability"), rows)


def _show_labels(task, inputs, *, top=None):
    if top is None and task.builder == "text_classifier":
        top = 1
    rows = []
    for text, labels in zip(inputs, task.predict(inputs, top=top), strict=True):
        shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        pairs = [(label, format_percent(share)) for label, share in labels]
        rows += [(*pair, shown) for pair in pairs or [("(no label)", "-")]]
    show_table(("label", "probability", "text"), rows)


def _show_vectors(task, inputs, **options):
    for vector in task.predict(inputs, **options):
        say(" ".join(f"{x:.6f}" for x in vector))


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
        span = "-" if answer.start is None else f"{answer.start}-{answer.end}"
        text = answer.answer or "(no answer)"
        rows.append((text, format_percent(answer.probability), span, question))
    show_table(("answer", "probability", "characters", "question"), rows)


def _show_tags(task, inputs, *, group_entities=False):
    names = ("entity", "label") if group_entities else ("token", "tag")
    for words in _separate(task.predict(inputs, group_entities=group_entities)):
        rows = [(*row[:2], format_percent(row.probability)) for row in words]
        show_table((*names, "probability"), rows)


def _show_text(task, inputs, **options):
    noun = "image" if task.builder == "image_to_sequence" else "recording"
    written = task.predict(inputs, **options)
    show_table((noun, "text"), list(zip(inputs, written, strict=True)))


def _show_speech(task, inputs, *, srt=False, **options):
    """Print the texts of recordings in a table, or their subtitles, separated by empty lines."""
    if not srt:
        _show_text(task, inputs, **options)
        return
    for subtitles in _separate(task.predict(inputs, srt=True, **options)):
        say(subtitles.removesuffix("\n"))


BY_TASK = {
    "causal_language_model": _show_continuations,
    "dependency_parser": _show_dependencies,
    "image_generator": _show_images,
    "image_to_sequence": _show_text,
    "image_text_matcher": _show_vectors,
    "masked_language_model": _show_candidates,
    "multi_label_classifier": _show_labels,
    "object_detector": _show_objects,
    "question_answerer": _show_answers,
    "sequence_labeler": _show_tags,
    "speech_recognizer": _show_speech,
    "speech_to_text": _show_speech,
    "text_classifier": _show_labels,
    "text_embedder": _show_vectors,
    "vision_transformer": _show_classes,
}
BLOCKS = (
    _show_continuations,
    _show_dependencies,
    _show_images,
    _show_candidates,
    _show_objects,
    _show_tags,
    _show_classes,
)
