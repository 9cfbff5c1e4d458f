"""Dataclasses whose fields are command line options, so that a command need not list them."""

import dataclasses
import pathlib
from typing import Annotated

import typer
from typer.core import TyperCommand

from keras_attention.cli.options import (
    Column,
    DataDir,
    Dataset,
    Encoding,
    Language,
    Number,
    OnError,
    SpeechTask,
    TextColumn,
    Whole,
    find_file,
    make_number,
    read_freeze,
    read_names,
    read_sizes,
)
from keras_attention.tasks import recipes
from keras_attention.tasks.recipes.recipe import LONGEST

# Functions that convert the values of options with types that typer does not support.
READERS = {"dimensions": read_sizes, "freeze": read_freeze, "lora_targets": read_names}
DEVICES = "Training on several devices"  # title of a panel of `train --help`


@dataclasses.dataclass(frozen=True)
class SourceOptions:
    """Options of `train` that name the training data and choose how it is read."""

    dataset: Dataset = None
    train: Annotated[
        pathlib.Path | None,
        typer.Option(help="File to train on. The formats are at the end of this help."),
    ] = None
    dev: Annotated[pathlib.Path | None, typer.Option(help="File that selects the best epoch.")] = (
        None
    )
    test: Annotated[pathlib.Path | None, typer.Option(help="File to test on.")] = None
    label_column: Column = None
    text_column: TextColumn = None
    languages: Annotated[
        str | None,
        typer.Option(help="Aligned files: with de-en, --train x reads x.de and x.en."),
    ] = None
    encoding: Encoding = None
    on_error: OnError = None
    turns: Annotated[
        int | None, Whole(max=1000, help="Dialogues: most turns before a reply. Default 3.")
    ] = None
    image_size: Annotated[
        int | None,
        Whole(
            max=1 << 12,
            help="Size in pixels of resized images. Default for folders: 48.",
        ),
    ] = None
    data_dir: DataDir = None

    def list_keywords(self):
        """Check that the files exist, and return a dict with the arguments of `Source`."""
        keywords = dataclasses.asdict(self)
        files = {part: keywords.pop(part) for part in ("train", "dev", "test")}
        if self.languages is None:  # otherwise the paths do not include the language suffix
            for file in files.values():
                find_file(file)
        return keywords | {"files": files}


def annotate(name, field):
    """Return the type of a recipe's dataclass field called `name`, annotated with its option."""
    if name in READERS:
        return Annotated[
            str | None, typer.Option(help=field.metadata["help"], callback=READERS[name])
        ]
    return Annotated[field.type | None, make_number(field)]


RecipeOptions = dataclasses.make_dataclass(
    "RecipeOptions",
    [(name, annotate(name, field), None) for name, field in recipes.list_options().items()],
    frozen=True,
)


def choose_panels():
    """Return {option of `train`: title of its panel in `--help`}, without the first ten options."""
    first = {"dataset", "train", "dev", "test", "label_column"}
    first |= {"epochs", "batch_size", "learning_rate"}
    panels = {field.name: "How files are read" for field in dataclasses.fields(SourceOptions)}
    training = {field.name for field in dataclasses.fields(recipes.Recipe)}
    for name in recipes.list_options():
        if name in recipes.IN_MODEL:
            panels[name] = "Size of the model"
        elif name in recipes.OF_CHECKPOINTS:
            panels[name] = "Hugging Face checkpoints"
        else:
            panels[name] = "Training" if name in training else "Data and scores of some tasks"
    return {name: panel for name, panel in panels.items() if name not in first}


TRAIN_PANELS = choose_panels()


@dataclasses.dataclass(frozen=True)
class PredictOptions:
    """Options that become arguments of `Task.predict`. None or False means "not set"."""

    top: Annotated[
        int | None, Whole(max=1_000_000, help="Number of labels or candidates for each input.")
    ] = None
    group_entities: Annotated[
        bool, typer.Option(help="Show entities instead of tags such as B-..., I-... and O.")
    ] = False
    beam: Annotated[int | None, Whole(max=1000, help="Beam width. 1 is greedy search.")] = None
    language: Language = None
    task: SpeechTask = None
    srt: Annotated[
        bool, typer.Option(help="Recordings: print subtitles with times, as in .srt files.")
    ] = False
    threshold: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Lowest score of objects in images.")
    ] = None
    words: Annotated[
        str | None, typer.Option(help="The only possible words in recordings, separated by spaces.")
    ] = None
    invert: Annotated[bool, typer.Option(help="Swap black and white in images.")] = False
    max_new_tokens: Annotated[
        int | None, Whole(max=LONGEST, help="Maximum number of tokens to generate.")
    ] = None
    temperature: Annotated[
        float | None, Number(min=0.0, help="Sampling temperature. 0 takes the most probable token.")
    ] = None
    top_k: Annotated[
        int | None, Whole(max=2**31 - 1, help="Draw from the k most probable tokens.")
    ] = None
    top_p: Annotated[
        float | None,
        Number(
            min=0.0, max=1.0, help="Draw from the most probable tokens with this total probability."
        ),
    ] = None
    seed: Annotated[int | None, make_number(recipes.list_options()["seed"])] = None


def make_options(kind):
    """Return a list of typer's option objects, one for each field of a dataclass."""
    app = typer.Typer(add_completion=False)
    app.command()(kind)
    return typer.main.get_command(app).params


def command_with(*kinds, panels=None):
    """Return a typer command class that has an option for each field of some dataclasses.

    When the command runs, `context.obj` is a list with an instance of each dataclass.

    Args:
        *kinds: the dataclasses.
        panels: dict from the name of an option to the title of its panel in `--help`. Options that
            are not in the dict stay in the first panel.
    """
    options = [option for kind in kinds for option in make_options(kind)]
    for option in options:
        option.rich_help_panel = (panels or {}).get(option.name)

    class Command(TyperCommand):
        def __init__(self, *arguments, params, **keywords):
            super().__init__(*arguments, params=[*params, *options], **keywords)

        def invoke(self, ctx):
            names = [[field.name for field in dataclasses.fields(kind)] for kind in kinds]
            values = [{name: ctx.params.pop(name) for name in group} for group in names]
            ctx.obj = [kind(**group) for kind, group in zip(kinds, values, strict=True)]
            return super().invoke(ctx)

    return Command
