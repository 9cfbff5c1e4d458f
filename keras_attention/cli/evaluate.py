"""`evaluate` and `predict`: a trained model on labelled data, and on typed texts or pictures."""

import itertools
import json
import pathlib
import sys

from keras_attention.cli.examples import load_examples
from keras_attention.cli.printing import say, show_table
from keras_attention.cli.show import show, show_classes, shows_blocks
from keras_attention.cli.sources import Source
from keras_attention.data.readers.columns import read_lines
from keras_attention.export.checks.formatting import format_score
from keras_attention.tasks import from_preset
from keras_attention.tasks.folders import MANIFEST, answers_alike
from keras_attention.tasks.presets import find_preset, is_checkpoint
from keras_attention.tasks.registry import get_task_class

SPLITS = ("train", "dev", "test")
STDIN = "-"
BLANK = None  # stands for an empty line of a file
# The other options of `predict` may be fixed in a file.
OF_ANY_FILE = {"top", "group_entities", "threshold", "invert"}


def evaluate(preset, *, file, split, kind, **options):
    """Prints the scores of a preset on one split of a data set, or on a file.

    Args:
        options: of `Source`, None where not given.
    """
    task = from_preset(preset, kind)
    if split not in SPLITS:
        raise ValueError(f"--split {split}: expected one of {', '.join(SPLITS)}.")
    files = {split: file}
    typed = Source(files=files, **options)
    if typed.dataset is None and file is None and not task.source.get("dataset"):
        raise ValueError("The model was trained on files: name one with --file, or a --dataset.")
    source = Source.remembered(task.metadata, files=typed.files, **options)
    Source(**{**options, "dataset": source.dataset}, files=files).check_options(task.builder)
    data_set, _ = load_examples(source, task.builder)
    task.check_data(data_set)
    examples = getattr(data_set, split)
    where = str(file) if file else f"{source.dataset} ({split})"
    for sentence in task.describe_scored(examples):
        say(sentence)
    scores = task.compute_scores(examples, where) if len(examples) else {}
    if not scores:
        raise ValueError(f"{source.dataset or file} has no {split} part.")
    show_table(
        ("score", ""),
        [(name, format_score(name, value)) for name, value in scores.items()],
        title=f"{task.path or preset} on {where}",
    )
    show_classes(scores)


def open_task(preset, kind, prefix=None):
    """Return the task of a preset, or of a checkpoint, whose sources get `prefix` in front."""
    if prefix is None:
        return from_preset(preset, kind)
    if not is_checkpoint(preset):
        raise ValueError(
            f"--prefix is for checkpoints of Hugging Face, and {preset} is none: leave it out."
        )
    from keras_attention.tasks.checkpoints import find_task, list_options

    builder = find_task(preset)
    if "prefix" not in list_options(builder):
        raise ValueError(f"--prefix is not for models of {builder}: leave it out.")
    return get_task_class(builder).from_preset(preset, kind, prefix=prefix)


def find_quickest(preset):
    """Return the path of a preset, and `"litert"` if that file answers like the Keras model."""
    path = find_preset(preset)
    return path, "litert" if (path / MANIFEST).is_file() and answers_alike(path) else None


def predict(preset, inputs, *, file, context=None, kind, chat=False, as_json, options, prefix=None):
    """Prints what a preset, or a checkpoint, says of each of `inputs`: texts or files.

    Args:
        context: path of a file with the text that questions are about, or `-`; None for inputs
            that are no questions.
        file: path of a file with an input on each line, or None; `-` among the inputs, or for the
            file, stands for standard input.
        chat: bool, whether to hold a conversation that begins with `inputs`, as far as there are.
        as_json: bool, whether to print a JSON object for each input.
        options: dict of options that only some tasks take; None or False where not given.
        prefix: str in front of every source, of checkpoints such as T5's; or None.
    """
    # Not `in (None, False)`: a temperature of 0 equals False.
    given = {k: value for k, value in options.items() if value is not None and value is not False}
    if not (kind or chat or prefix or is_checkpoint(preset) or given.keys() - OF_ANY_FILE):
        preset, kind = find_quickest(preset)
    task = open_task(preset, kind, prefix)
    if strange := [name for name in given if name not in task.predict_options]:
        flag = strange[0].replace("_", "-")
        raise ValueError(f"--{flag} is not for models of {task.builder}: leave it out.")
    if chat:
        converse(task, inputs, given)
        return
    lines = inputs = collect_inputs(inputs, file)
    if task.takes_context or context is not None:
        inputs = add_context(task, lines, context)
    if not as_json:
        show_lines(task, inputs, given)
        return
    typed = [one for one in inputs if one is not BLANK]
    found = iter(task.predict(typed, **given) if typed else ())
    for line in lines:
        answer = None if line is BLANK else as_plain(next(found))
        about = {"input": "" if line is BLANK else line, "prediction": answer}
        say(json.dumps(about, ensure_ascii=False))


def show_lines(task, inputs, options):
    """Print what `show` prints of the inputs, and an empty line for each `BLANK`.

    Among blocks of lines with an empty line between them, it is an empty block.
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
    """Answers each line of standard input with the next turn of a dialogue, until the end.

    Args:
        turns: list of str, how the dialogue begins. options: of `predict` of the task.
    """
    if not task.converses:
        raise ValueError(
            f"--chat is for models of dialogues, and this {task.builder} is not marked as one: "
            "train it on dialogues."
        )
    if "beam" in options:
        raise ValueError("--beam is not for --chat, whose replies are drawn: leave it out.")
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
    """Return the typed inputs, and those on the lines of a file or of standard input.

    An empty line is `BLANK`: there is one line of output for each line of input.
    """
    found = []
    for text in [*inputs, *([] if file is None else [file])]:
        if str(text) == STDIN:
            found += split_lines(sys.stdin.read())
        elif text is file:
            found += split_lines("\n".join(line for _, line in read_lines(pathlib.Path(file))))
        else:
            found.append(text)
    if not found:
        raise ValueError("There is nothing to predict: give texts or pictures, or --file.")
    return found


def split_lines(text):
    """Split a text into lines, with `BLANK` for an empty one; no line is behind the last break."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") if line.strip() else BLANK for line in lines]


def add_context(task, questions, path):
    """Return (question, context) for each of the questions."""
    if not task.takes_context:
        raise ValueError(f"--context is not for models of {task.builder}: leave it out.")
    if path is None:
        raise ValueError(
            "Questions are answered from a text: name the file that holds it with --context."
        )
    if str(path) == STDIN:
        context = sys.stdin.read()
    else:
        context = "\n".join(line for _, line in read_lines(pathlib.Path(path)))
    if not context.strip():
        raise ValueError(f"--context {path} is empty.")
    return [one if one is BLANK else (one, context) for one in questions]


def as_plain(found):
    """Tuples with names as objects, at any depth."""
    if hasattr(found, "_asdict"):
        return {name: as_plain(value) for name, value in found._asdict().items()}
    return [as_plain(value) for value in found] if isinstance(found, list) else found
