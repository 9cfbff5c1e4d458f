"""The commands. Each imports its work when it runs, so that help is quick."""

import dataclasses
import pathlib
from typing import Annotated

import typer

from keras_attention.cli.mesh import read_mesh
from keras_attention.cli.option_classes import (
    PredictOptions,
    RecipeOptions,
    SourceOptions,
    command_with,
)
from keras_attention.cli.options import (
    EPOCHS,
    LENGTH,
    SEED,
    Builder,
    Column,
    DataDir,
    Dataset,
    Demo,
    Encoding,
    Format,
    OnError,
    Preset,
    Quantization,
    Target,
    TextColumn,
    Whole,
    With,
    data_file,
    find_context,
    find_file,
    find_preset,
)

app = typer.Typer(
    help="Train, check, use and export attention models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def demo(
    name: Annotated[Demo, typer.Argument(help="What to show.")] = "digits",
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder to fill; an older demo is replaced. Default in runs."),
    ] = None,
    epochs: Annotated[int | None, EPOCHS] = None,
    seed: Annotated[int | None, SEED] = None,
):
    """Train on data that is always at hand: no network, a few minutes a model.

    digits: a small vision transformer on handwritten digits. dates: dates as people write them in
    many languages to ISO 8601, by a recurrent network with attention and by a Transformer.
    """
    from keras_attention.cli import demo as command

    command.demo(name, output, {"epochs": epochs, "seed": seed})


@app.command(cls=command_with(SourceOptions, RecipeOptions))
def train(
    ctx: typer.Context,
    builder: Builder,
    output: Annotated[pathlib.Path, typer.Option(help="Folder to fill: new, empty or unfinished.")],
    preset: Annotated[
        str | None,
        typer.Option(
            "--from", help="Folder or name of a trained model, or hf://ID, to go on from."
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(
            help="Train on several devices, with JAX: data=4,model=2 shares a batch among four, "
            "and layers among two of each.",
            callback=read_mesh,
        ),
    ] = None,
    fully_sharded: Annotated[
        bool, typer.Option(help="With --mesh: weights are shared among those of data, too.")
    ] = False,
):
    """Train a model, test it, export it and write its card. Run again to go on after a stop.

    Numbers that are not given come from keras_attention/tasks/recipes/.
    """
    source, numbers = ctx.obj
    source = source.describe()

    from keras_attention.cli import train as command
    from keras_attention.cli.sources import Source

    command.train(
        builder,
        output,
        Source(**source),
        dataclasses.asdict(numbers),
        preset=preset,
        mesh=mesh,
        fully_sharded=fully_sharded,
    )


@app.command()
def evaluate(
    preset: Preset,
    dataset: Dataset = None,
    file: data_file("score") = None,
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    label_column: Column = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    on_error: OnError = None,
    data_dir: DataDir = None,
    kind: With = None,
):
    """Score a trained model, by default on the test split of the data it was trained on."""
    from keras_attention.cli import evaluate as command

    command.evaluate(
        preset,
        dataset=dataset,
        file=file,
        split=split,
        label_column=label_column,
        text_column=text_column,
        encoding=encoding,
        on_error=on_error,
        data_dir=data_dir,
        kind=kind,
    )


@app.command(cls=command_with(PredictOptions))
def predict(
    ctx: typer.Context,
    preset: Preset,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, files of pictures or of sound, or classes to draw; - reads standard input."
        ),
    ] = None,
    file: Annotated[
        pathlib.Path | None,
        typer.Option(help="File with an input on each line, or -.", callback=find_file),
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="To be answered from --context; may be repeated.")
    ] = None,
    context: Annotated[
        pathlib.Path | None,
        typer.Option(help="File of text that holds the answers, or -.", callback=find_context),
    ] = None,
    kind: With = None,
    chat: Annotated[
        bool, typer.Option(help="Hold a conversation: a turn on each line of standard input.")
    ] = False,
    json: Annotated[bool, typer.Option(help="Print a JSON object for each input.")] = False,
    prefix: Annotated[
        str | None, typer.Option(help="In front of every source, as T5 of hf:// wants.")
    ] = None,
):
    """Tag, parse, label, translate or go on with texts, answer questions, converse, name or find
    what is in pictures, draw some, or write what is said in recordings."""
    from keras_attention.cli import evaluate as command

    command.predict(
        preset,
        [*(inputs or []), *(question or [])],
        file=file,
        context=context,
        kind=kind,
        chat=chat,
        as_json=json,
        prefix=prefix,
        options=dataclasses.asdict(ctx.obj[0]),
    )


@app.command()
def export(
    preset: Annotated[
        pathlib.Path,
        typer.Argument(
            help="Folder or name of a trained model, or a .keras.", callback=find_preset
        ),
    ],
    output: Annotated[pathlib.Path | None, typer.Option(help="File or folder to write.")] = None,
    format: Annotated[Format, typer.Option(help="What to write.")] = "litert",
    quantization: Annotated[
        Quantization | None,
        typer.Option(help="LiteRT only: float16, int8_weights or int8.", metavar="<name>"),
    ] = None,
    batch_size: Annotated[int | None, Whole(max=1 << 16, help="Fixed; default any.")] = None,
    sequence_length: Annotated[int | None, Whole(max=LENGTH, help="Fixed; default any.")] = None,
    compatible_with: Annotated[
        list[Target] | None,
        typer.Option(
            help="LiteRT only: where it must run, and is tried: interpreter, gpu or web; may be "
            "repeated.",
            metavar="<name>",
        ),
    ] = None,
    file: data_file("calibrate int8 on") = None,
    data_dir: DataDir = None,
):
    """Export a trained model once more: another format, quantization or fixed shapes."""
    from keras_attention.cli import inspect as command

    command.export(
        preset,
        output,
        format=format,
        quantization=quantization,
        batch_size=batch_size,
        sequence_length=sequence_length,
        compatible_with=[target.value for target in compatible_with or ()],
        file=file,
        data_dir=data_dir,
    )


@app.command()
def inspect(
    file: Annotated[
        pathlib.Path,
        typer.Argument(help="A .keras, a SavedModel or a .tflite.", callback=find_file),
    ],
):
    """Show what is in a model file: signatures, ops, size."""
    from keras_attention.cli import inspect as command

    command.inspect(file)


@app.command()
def web(
    preset: Preset,
    output: Annotated[pathlib.Path, typer.Option(help="Folder to fill: new or empty.")],
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    example: Annotated[
        str | None, typer.Option(help="The first input: a text, or the path of a picture.")
    ] = None,
):
    """Write a static page that runs a trained model in the browser, and shows its attention."""
    from keras_attention.cli import web as command

    command.web(preset, output, title=title, example=example)


@app.command()
def serve(
    preset: Preset,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On loopback; 0 is a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
):
    """Open a page that runs a trained model in the browser, served on loopback."""
    from keras_attention.cli import web as command

    command.serve(preset, port, browser)
