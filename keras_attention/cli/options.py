"""The arguments and options of the commands: their kinds, bounds, help, and first checks."""

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
Quantization = Literal["float16", "int8_weights", "int8"]
Broken = Literal["raise", "skip"]


class Target(enum.StrEnum):  # which may be repeated, and typer takes no list of literals
    interpreter = "interpreter"
    gpu = "gpu"
    web = "web"


def finite(value):
    """Refuses `nan`, which no bound keeps out, and `inf`."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number.")
    return value


def read_freeze(value):
    """`all`, or a number of blocks, as `--freeze` has it."""
    if value in (None, "all"):
        return value
    if not value.isdecimal() or not 0 < int(value) <= 1000:
        raise typer.BadParameter(f"{value!r}: expected a number of blocks, or all.")
    return int(value)


def read_names(value):
    """`all`, or a list of names with commas between them, as `--lora-targets` has it."""
    if value in (None, "all"):
        return value
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise typer.BadParameter(f"{value!r}: expected names with commas between them, or all.")
    return names


def find_file(path):
    """Refuses a path that is not there, before the seconds in which Keras is imported.

    A word that may be the name of a preset is looked up by the command.
    """
    given = path is not None and str(path) != "-"
    if given and not path.exists() and (path.suffix or len(path.parts) > 1):
        raise FileNotFoundError(f"There is no file or folder {path}.")
    return path


def find_context(path):
    """Refuses the text itself, and a path that is not there, where a file of text is wanted."""
    if path is not None and str(path) != "-" and not os.path.exists(path):
        raise ValueError(
            f"--context {str(path)[:60]!r} is no file: expected the name of one that holds the "
            "text, or - for standard input."
        )
    return path


def find_model(value):
    """Return a path that is there, or the id of a checkpoint, which is looked up by the command."""
    return value if value.startswith(HUB) else find_file(pathlib.Path(value))


def check_task(value):
    """Return the name of a task. Another name is refused with the list."""
    if value not in TASKS:
        known = ", ".join(map(repr, sorted(TASKS)))
        raise typer.BadParameter(f"{value!r} is not one of {known}.")
    return value


def find_preset(path):
    """Refuses a checkpoint where the files of a preset are needed, and a path that is not there."""
    if str(path).startswith(str(pathlib.Path(HUB))):
        raise ValueError(
            f"{HUB}{str(path).removeprefix('hf:/')} is a checkpoint, and this takes a preset: make "
            "one of it with train --from, or with ka.tasks.from_preset(...).save_to_preset(...)."
        )
    return find_file(path)


# Numbers have bounds: absurd ones would end in an error of some library, or fill the memory.
Number = functools.partial(typer.Option, callback=finite)
Whole = functools.partial(typer.Option, min=1)
LENGTH = recipes.LONGEST


def make_number(field):
    """Make the option for a number of recipes, a dataclass field with its help and bounds."""
    about = field.metadata
    metavar = "<name>" if get_origin(field.type) is Literal else None
    is_float = float in (field.type, *get_args(field.type))
    return typer.Option(
        help=about["help"],
        min=about["least"],
        max=about["most"],
        metavar=metavar,
        callback=finite if is_float else None,
    )


SEED, EPOCHS = (make_number(recipes.list_options()[name]) for name in ("seed", "epochs"))

# No enum: its names would stand in a narrow column of --help, broken anywhere.
Builder = Annotated[
    str,
    typer.Argument(
        help=f"What to train: {', '.join(sorted(TASKS))}.",
        callback=check_task,
        autocompletion=lambda incomplete: [x for x in sorted(TASKS) if x.startswith(incomplete)],
    ),
]
Preset = Annotated[
    str,
    typer.Argument(
        help="Folder of a trained model, a file in it, or its name; or a checkpoint, hf://ID or "
        "its folder.",
        callback=find_model,
    ),
]
With = Annotated[
    Kind | None,
    typer.Option(
        "--with",
        help=f"Which file to run: {', '.join(get_args(Kind))}; default the first, of predict "
        "litert where it answers like keras.",
        metavar="<name>",
    ),
]
DataDir = Annotated[pathlib.Path | None, typer.Option(help="Where data sets are kept.")]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="Name in TFDS, e.g. fashion_mnist, tiny_shakespeare, goemotions, bccd, spoken_digit; "
        "or of our own: digits, dates, facts, sentence_polarity, spoken_numbers."
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels, or targets: a name, or a number from 0 where no row names them."
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(help="Column of the texts to read: a name, or a number likewise.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Of files of text, such as latin-1; default UTF-8.")
]
OnError = Annotated[
    Broken | None,
    typer.Option(
        help="What to do with broken examples of files: raise names all of them and stops, skip "
        "leaves them out and says how many; default raise.",
        metavar="<name>",
    ),
]
Language = Annotated[
    str | None, typer.Option(help="That is spoken, of Whisper: de, or german; default English.")
]
SpeechTask = Annotated[
    str | None, typer.Option(help="Of Whisper: transcribe, or translate into English.")
]


def data_file(part, likewise=None):
    """Make the option of a file of examples.

    Args:
        part: str, what the file is for.
        likewise: str, an option whose help lists the kinds of files; None lists them.
    """
    if likewise is not None:
        help = f"File to {part}: as for {likewise}."
        return Annotated[pathlib.Path | None, typer.Option(help=help)]
    kinds = (
        "CoNLL(-U); trees in brackets; CSV, TSV, JSON lines or a folder of texts; for --languages "
        "without suffix; JSON lines or ChatterBot's YAML of dialogues; plain text, or a folder of "
        "it, for a language model; SQuAD's JSON, or QAMR's TSV, of questions; a folder of class "
        "folders of pictures; COCO's JSON or Pascal VOC of boxes; COCO's JSON or a table of "
        "captions; a folder or a table of recordings"
    )
    return Annotated[pathlib.Path | None, typer.Option(help=f"File to {part}: {kinds}.")]
