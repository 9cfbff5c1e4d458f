"""The types of command line arguments and options: bounds, help and early checks."""

import enum
import functools
import math
import os
import pathlib
from typing import Annotated, Literal, get_args, get_origin

import typer

from keras_attention.tasks import recipes
from keras_attention.tasks.registry import HUB, TASKS

Demo = Literal["digits", "dates"]
Kind = Literal["keras", "saved_model", "litert", "litert-int8"]
Format = Literal["saved_model", "litert"]
Quantization = Literal["float16", "int8_weights", "int4_weights", "int8"]
Broken = Literal["raise", "skip"]


class Target(enum.StrEnum):  # an enum because typer does not accept lists of literals
    interpreter = "interpreter"
    gpu = "gpu"
    web = "web"


def check_finite(value):
    """Return `value`, a number or None, or raise an error if it is NaN or infinite.

    The bounds of an option (`min`, `max`) do not exclude NaN.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def read_freeze(value):
    """Convert the value of `--freeze` (`all`, or a number of blocks) to `"all"`, int or None."""
    if value in (None, "all"):
        return value
    if not value.isdecimal() or not 0 < int(value) <= 1000:
        raise typer.BadParameter(f"{value!r}: expected a number of blocks, or all.")
    return int(value)


def read_names(value):
    """Convert the value of `--lora-targets` to `"all"`, a list of names, or None."""
    if value in (None, "all"):
        return value
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise typer.BadParameter(f"{value!r}: expected names separated by commas, or all.")
    return names


def read_sizes(value):
    """Convert the value of `--dimensions`, such as `128,64`, to a list of int, or None."""
    if value is None:
        return None
    sizes = [size.strip() for size in value.split(",")]
    if not all(size.isdecimal() and 0 < int(size) <= 1 << 16 for size in sizes):
        raise typer.BadParameter(f"{value!r}: expected whole numbers separated by commas.")
    return [int(size) for size in sizes]


def find_file(path):
    """Return a path, or raise an error if it does not exist, before the slow import of Keras.

    A path without a folder or suffix may be the name of a preset. The command checks it later.
    """
    is_path = path is not None and str(path) != "-"
    if is_path and not path.exists() and (path.suffix or len(path.parts) > 1):
        raise FileNotFoundError(f"There is no file or folder {path}.")
    return path


def find_context(path):
    """Return the path in `--context`, or `-`, or raise an error if there is no such file."""
    if path is not None and str(path) != "-" and not os.path.exists(path):
        raise ValueError(
            f"--context {str(path)[:60]!r} is not a file: expected the name of a text file, or - "
            "for standard input."
        )
    return path


def find_model(value):
    """Return the path of a preset, or raise an error if it does not exist.

    `value` is a str, the value of an option. The id of a checkpoint (`hf://ID`) is returned as a
    str. The command checks it later.
    """
    return value if value.startswith(HUB) else find_file(pathlib.Path(value))


def check_task(value):
    """Return `value`, the name of a task, or raise an error if it is unknown."""
    if value not in TASKS:
        names = ", ".join(map(repr, sorted(TASKS)))
        raise typer.BadParameter(f"{value!r} is not one of {names}.")
    return value


def find_preset(path):
    """Return the path of a preset, or raise an error if it does not exist or is a checkpoint.

    This is for commands that cannot use a checkpoint of Hugging Face.
    """
    if str(path).startswith(str(pathlib.Path(HUB))):
        raise ValueError(
            f"{HUB}{str(path).removeprefix('hf:/')} is a checkpoint, and this command needs a "
            "preset: make one with train --from, or with "
            "ka.tasks.from_preset(...).save_to_preset(...)."
        )
    return find_file(path)


# Numbers have bounds, because huge values would exhaust the memory or fail in another library.
Number = functools.partial(typer.Option, callback=check_finite)
Whole = functools.partial(typer.Option, min=1)


def make_number(field):
    """Return the typer option for a hyperparameter, which is a dataclass field of a recipe."""
    metadata = field.metadata
    metavar = "<name>" if get_origin(field.type) is Literal else None
    is_float = float in (field.type, *get_args(field.type))
    return typer.Option(
        help=metadata["help"],
        min=metadata["least"],
        max=metadata["most"],
        metavar=metavar,
        callback=check_finite if is_float else None,
    )


SEED, EPOCHS = (make_number(recipes.list_options()[name]) for name in ("seed", "epochs"))

# This is not an enum, because --help would wrap the names in a narrow column.
Builder = Annotated[
    str,
    typer.Argument(
        help=f"Task to train: {', '.join(sorted(TASKS))}.",
        callback=check_task,
        autocompletion=lambda incomplete: [x for x in sorted(TASKS) if x.startswith(incomplete)],
    ),
]
Preset = Annotated[
    str,
    typer.Argument(
        help="Trained model: its folder, a file in this folder, or its name. Or a Hugging Face "
        "checkpoint: hf://ID or its folder.",
        callback=find_model,
    ),
]
With = Annotated[
    Kind | None,
    typer.Option(
        "--with",
        help=f"File to run: {', '.join(get_args(Kind))}. Default: the first that exists. The "
        "default of predict is litert, if its answers are those of keras.",
        metavar="<name>",
    ),
]
Context = Annotated[
    pathlib.Path | None,
    typer.Option(
        help="Text file that contains the answers. - reads standard input.", callback=find_context
    ),
]
DataDir = Annotated[pathlib.Path | None, typer.Option(help="Folder of downloaded datasets.")]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="Dataset of TFDS, such as fashion_mnist or goemotions, or one of digits, dates, "
        "facts, sentence_polarity and spoken_numbers."
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        help="Column of labels or targets: a name, or a number from 0 if there is no header row."
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(help="Column with the text: a name or a number, as --label-column.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of text files, such as latin-1. Default UTF-8.")
]
OnError = Annotated[
    Broken | None,
    typer.Option(
        help="What to do with broken examples in files: raise (the default) lists them and stops, "
        "skip leaves them out and counts them.",
        metavar="<name>",
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        help="Whisper: the spoken language, such as de or german, or auto. Default English."
    ),
]
SpeechTask = Annotated[
    str | None, typer.Option(help="Whisper: transcribe, or translate into English.")
]


def data_file(purpose):
    """Return the annotated type of an option for a file with examples.

    `purpose` is a str, which follows "File to" in the help.
    """
    help = f"File to {purpose}. The end of train --help lists the formats."
    return Annotated[pathlib.Path | None, typer.Option(help=help)]


FILE_FORMATS = (  # the end of `train --help`
    "Formats of files. Tags: CoNLL or CoNLL-U. Trees: CoNLL-U or brackets. Labeled text and pairs: "
    "CSV, TSV, JSON lines, or a folder. Aligned files: the path without the suffix of the "
    "language. Dialogues: JSON lines or ChatterBot's YAML. Language models: text files or a "
    "folder. Questions: SQuAD's JSON or QAMR's TSV. Images: a folder with a folder for each class. "
    "Boxes: COCO's JSON or Pascal VOC. Captions: COCO's JSON or a table. Recordings: a folder or a "
    "table."
)
