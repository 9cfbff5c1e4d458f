"""The `evaluate` and `predict` commands, which apply a trained model."""

import contextlib
import itertools
import json
import pathlib
import sys

import numpy as np

from keras_attention.cli.printing import say, show_table
from keras_attention.cli.show import show, show_classes, shows_blocks
from keras_attention.cli.sources import Source
from keras_attention.data.readers.tables import read_lines
from keras_attention.export.checks.formatting import format_score
from keras_attention.files.io import prefix_errors
from keras_attention.tasks import from_preset
from keras_attention.tasks.folders import MANIFEST, answers_alike
from keras_attention.tasks.presets import find_preset, is_checkpoint
from keras_attention.tasks.registry import get_task_class

SPLITS = ("train", "dev", "test")
STDIN = "-"
BLANK = None  # represents an empty line in a file
FOR_ANY_FILE = {"top", "group_entities", "threshold", "invert"}  # options for all file formats


def evaluate(preset, *, file, split, kind, **options):
    """Print the scores of a preset on one split of a dataset, or on a file.

    Args:
        preset: str, path or name of a preset, the folder of a trained model.
        kind: str, the format of the file to run: `"keras"`, `"saved_model"`, `"litert"` or
            `"litert-int8"`. None selects the first of these that exists.
        file: path of a file with examples. None uses the dataset.
        split: str, `"train"`, `"dev"` or `"test"`.
        **options: other arguments of `Source`. A value of None uses the value from training.
    """
    task = from_preset(preset, kind)
    if split not in SPLITS:
        raise ValueError(f"--split {split}: expected one of {', '.join(SPLITS)}.")
    files = {split: file}
    typed = Source(files=files, **options)
    if typed.dataset is None and file is None and not task.source.get("dataset"):
        raise ValueError("The model was trained on files: name one with --file, or a --dataset.")
    source = Source.from_manifest(task.metadata, files=typed.files, **options)
    Source(**{**options, "dataset": source.dataset}, files=files).check_options(task.builder)
    data_set, _ = source.load_and_report(task.builder)
    task.check_data(data_set)
    examples = data_set.parts[split]
    name = str(file) if file else f"{source.dataset} ({split})"
    for note in task.describe_scored(examples):
        say(note)
    scores = task.compute_scores(examples, name) if len(examples) else {}
    if not scores:
        raise ValueError(f"{source.dataset or file} has no {split} part.")
    show_table(
        ("score", ""),
        [(name, format_score(name, value)) for name, value in scores.items()],
        title=f"{task.path or preset} on {name}",
    )
    show_classes(scores)


def open_task(preset, kind, prefix=None):
    """Open a preset, the folder of a trained model, or a checkpoint as a task.

    `kind` is the file of the preset to run, or None. `prefix` is a str that is put before every
    input of a checkpoint such as T5. None adds nothing.
    """
    if prefix is None:
        return from_preset(preset, kind)
    if not is_checkpoint(preset):
        raise ValueError(
            f"--prefix is for Hugging Face checkpoints, and {preset} is a preset: leave it out."
        )
    from keras_attention.tasks.checkpoints import find_task, list_options

    builder = find_task(preset)
    if "prefix" not in list_options(builder):
        raise ValueError(f"--prefix does not apply to {builder}: leave it out.")
    return get_task_class(builder).from_preset(preset, kind, prefix=prefix)


def predict(preset, inputs, *, file, context=None, kind, chat=False, as_json, options, prefix=None):
    """Print the predictions of a preset or a checkpoint.

    Args:
        preset: str, a preset or a checkpoint.
        inputs: list of str, the text or the paths of files. `-` reads lines from standard input.
        file: path of a file with one more input on each line, or `-` for standard input. None if
            all inputs are in `inputs`.
        context: path of a file with the context of questions, or `-` for standard input. None if
            the inputs are not questions.
        kind: str, the format of the file to run. None selects the LiteRT file if it gives the same
            results as the Keras model, and otherwise the first file that exists.
        chat: bool, whether to start a dialogue, whose first turns are `inputs`.
        as_json: bool, whether to print a JSON object for each input.
        options: dict of keyword arguments of `task.predict`. Values of None or False are ignored.
        prefix: str that is put before every input of a checkpoint such as T5. None adds nothing.
    """
    # `in (None, False)` would be wrong, because a temperature of 0 equals False.
    options = {k: v for k, v in options.items() if v is not None and v is not False}
    if not (kind or chat or prefix or is_checkpoint(preset) or options.keys() - FOR_ANY_FILE):
        preset = find_preset(preset)
        kind = "litert" if (preset / MANIFEST).is_file() and answers_alike(preset) else None
    task = open_task(preset, kind, prefix)
    for name in options:
        if name not in task.predict_options:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} does not apply to {task.builder}: leave it out.")
    if chat:
        converse(task, inputs, options)
        return
    lines = inputs = collect_inputs(inputs, file)
    if task.takes_context or context is not None:
        inputs = add_context(task, lines, context)
    check_inputs(task, inputs)
    if not as_json:
        show_lines(task, inputs, options)
        return
    typed = [one for one in inputs if one is not BLANK]
    answers = iter(task.predict(typed, **options) if typed else ())
    for line in lines:
        answer = None if line is BLANK else as_plain(next(answers))
        entry = {"input": "" if line is BLANK else line, "prediction": answer}
        say(json.dumps(entry, ensure_ascii=False))


def check_inputs(task, inputs):
    """Raise an error for the first invalid input, before anything is predicted.

    `task` is a `Task`, a model with its preprocessing, and `inputs` a list of inputs of its
    `predict`. The message contains the number of the input, counted from 1.
    """
    for number, one in enumerate(inputs, start=1):
        with prefix_errors(f"Input {number}") if len(inputs) > 1 else contextlib.nullcontext():
            if one is not BLANK:
                task.check_inputs([one])


def show_lines(task, inputs, options):
    """Print the predictions for the inputs, and an empty line for each `BLANK`.

    `options` is a dict of keyword arguments of `task.predict`. Predictions of several lines are
    separated by empty lines. A `BLANK` is then an empty block.
    """
    for k, (blank, group) in enumerate(itertools.groupby(inputs, lambda one: one is BLANK)):
        group = list(group)
        if k and shows_blocks(task):
            say("")
        if not blank:
            show(task, group, options)
            continue
        for _ in group[1:] if shows_blocks(task) else group:
            say("")


def converse(task, turns, options):
    """Reply to each line of standard input. The dialogue begins with `turns`, a list of str.

    `task` is a `Task` whose model was trained on dialogues, and `options` a dict of arguments of
    its `reply`.
    """
    if not task.converses:
        raise ValueError(
            f"--chat is for dialogue models, and this {task.builder} was not trained on dialogues: "
            "train it on dialogues."
        )
    if "beam" in options:
        raise ValueError("--beam does not apply to --chat, which draws replies: leave it out.")
    turns = list(turns)
    typed = sys.stdin.isatty()
    while True:
        if typed:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            turns.append(line.strip())
            turns.append(task.reply(turns, **options) or "...")
            say(turns[-1])


def collect_inputs(inputs, file):
    """Return a list of all inputs: `inputs` from the command line, then the lines of `file`.

    `file` is a path, `-` for standard input, or None. An empty line becomes `BLANK`, so that there
    is a line of output for each line of input.
    """
    results = []
    for text in [*inputs, *([] if file is None else [file])]:
        if str(text) == STDIN:
            results += split_lines(sys.stdin.read())
        elif text is file:
            results += split_lines("\n".join(line for _, line in read_lines(pathlib.Path(file))))
        else:
            results.append(text)
    if not results:
        raise ValueError("There is nothing to predict: give text, images or sounds, or --file.")
    return results


def split_lines(text):
    """Split a text into lines, and replace empty lines by `BLANK`.

    A line break at the end of the text does not start another line.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") if line.strip() else BLANK for line in lines]


def add_context(task, questions, path):
    """Return a list of (question, context) pairs, where the context is read from the file `path`.

    `task` is a `Task`, and `questions` a list of str. `BLANK` questions are not changed.
    """
    if not task.takes_context:
        raise ValueError(f"--context does not apply to {task.builder}: leave it out.")
    if path is None:
        raise ValueError(
            "Questions are answered from a text: name the file that contains it with --context."
        )
    if str(path) == STDIN:
        context = sys.stdin.read()
    else:
        context = "\n".join(line for _, line in read_lines(pathlib.Path(path)))
    if not context.strip():
        raise ValueError(f"--context {path} is empty.")
    return [one if one is BLANK else (one, context) for one in questions]


def as_plain(answer):
    """Convert named tuples in nested lists to dicts, and arrays to lists, for JSON."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, tuple) and type(answer) is not tuple:
        return {name: as_plain(value) for name, value in answer._asdict().items()}
    return [as_plain(value) for value in answer] if isinstance(answer, list) else answer
