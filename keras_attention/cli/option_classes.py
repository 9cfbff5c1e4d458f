"""Options that are the fields of dataclasses, so that a command has them without naming each."""

import dataclasses
from typing import Annotated

import typer
from typer.core import TyperCommand

from keras_attention.cli.options import (
    LENGTH,
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
    data_file,
    find_file,
    make_number,
    read_freeze,
    read_names,
)
from keras_attention.tasks import recipes

# What is typed for numbers that no type of the command line reads.
READERS = {"freeze": read_freeze, "lora_targets": read_names}


@dataclasses.dataclass(frozen=True)
class SourceOptions:
    """Where the data are that a model is trained on, and how to read them."""

    dataset: Dataset = None
    train: data_file("train on") = None
    dev: data_file("choose the best epoch on", likewise="--train") = None
    test: data_file("test on", likewise="--train") = None
    label_column: Column = None
    text_column: TextColumn = None
    languages: Annotated[
        str | None, typer.Option(help="Of aligned files: de-en for --train x is x.de and x.en.")
    ] = None
    encoding: Encoding = None
    on_error: OnError = None
    turns: Annotated[
        int | None, Whole(max=1000, help="Of a dialogue that a reply is to, at most.")
    ] = None
    image_size: Annotated[
        int | None, Whole(max=1 << 12, help="Pixels that pictures in folders are resized to.")
    ] = None
    data_dir: DataDir = None

    def describe(self):
        """Return the keywords of a `Source`, after a check that the files are there."""
        about = dataclasses.asdict(self)
        files = {part: about.pop(part) for part in ("train", "dev", "test")}
        if self.languages is None:  # with them, files are named without suffix
            for file in files.values():
                find_file(file)
        return about | {"files": files}


def annotate(name, field):
    """Return the annotated type of the option for a number of recipes, a dataclass field."""
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


@dataclasses.dataclass(frozen=True)
class PredictOptions:
    """What only some tasks take when they predict; None or False where it is not given."""

    top: Annotated[
        int | None, Whole(max=1_000_000, help="How many classes or candidates of each to show.")
    ] = None
    group_entities: Annotated[
        bool, typer.Option(help="Show entities, where tags are B-..., I-... and O.")
    ] = False
    beam: Annotated[int | None, Whole(max=1000, help="Texts that the search holds.")] = None
    language: Language = None
    task: SpeechTask = None
    threshold: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Least score of objects in pictures.")
    ] = None
    words: Annotated[
        str | None, typer.Option(help="The only words of recordings, with spaces between them.")
    ] = None
    invert: Annotated[bool, typer.Option(help="Swap black and white in pictures.")] = False
    max_new_tokens: Annotated[int | None, Whole(max=LENGTH, help="How many to go on for.")] = None
    temperature: Annotated[
        float | None, Number(min=0.0, help="Of chance in going on; 0 takes the best token.")
    ] = None
    top_k: Annotated[int | None, Whole(max=2**31 - 1, help="Draw from the k best tokens.")] = None
    top_p: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Draw from the likeliest, up to this.")
    ] = None
    seed: Annotated[int | None, make_number(recipes.list_options()["seed"])] = None


def make_options(kind):
    """Return the options of a command line for the fields of a dataclass, a list."""
    app = typer.Typer(add_completion=False)
    app.command()(kind)
    return typer.main.get_command(app).params


def command_with(*kinds):
    """Make a class of commands with an option for each field of some dataclasses.

    The function of the command gets an instance of each as `context.obj`, a list.
    """
    options = [option for kind in kinds for option in make_options(kind)]

    class Command(TyperCommand):
        def __init__(self, *arguments, params, **keywords):
            super().__init__(*arguments, params=[*params, *options], **keywords)

        def invoke(self, ctx):
            names = [[field.name for field in dataclasses.fields(kind)] for kind in kinds]
            values = [{name: ctx.params.pop(name) for name in group} for group in names]
            ctx.obj = [kind(**group) for kind, group in zip(kinds, values, strict=True)]
            return super().invoke(ctx)

    return Command
