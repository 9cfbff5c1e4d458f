"""The commands and their options. To keep `--help` fast, imports are inside the commands."""

import dataclasses
import pathlib
from typing import Annotated

import typer

from keras_attention.cli.mesh import read_mesh
from keras_attention.cli.option_classes import (
    DEVICES,
    TRAIN_PANELS,
    PredictOptions,
    RecipeOptions,
    SourceOptions,
    command_with,
)
from keras_attention.cli.options import (
    EPOCHS,
    FILE_FORMATS,
    SEED,
    Builder,
    Column,
    Context,
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
    find_file,
    find_preset,
)
from keras_attention.tasks.recipes.recipe import LONGEST

app = typer.Typer(
    help="Train, check, use and export attention models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def demo(
    name: Annotated[Demo, typer.Argument(help="Name of the demo: digits or dates.")] = "digits",
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="Output folder. An older demo is replaced. Default: a folder in runs."),
    ] = None,
    epochs: Annotated[int | None, EPOCHS] = None,
    seed: Annotated[int | None, SEED] = None,
):
    """Train a small model in a few minutes, without a download.

    digits: a vision transformer that recognizes handwritten digits. dates: a recurrent network with
    attention and a Transformer that convert dates in many languages to ISO 8601.
    """
    from keras_attention.cli import demo as command

    command.demo(name, output, {"epochs": epochs, "seed": seed})


@app.command(
    cls=command_with(SourceOptions, RecipeOptions, panels=TRAIN_PANELS), epilog=FILE_FORMATS
)
def train(
    ctx: typer.Context,
    builder: Builder,
    output: Annotated[
        pathlib.Path, typer.Option(help="Output folder: new, empty, or of an unfinished run.")
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            "--from", help="Trained model to continue from: its folder or name, or hf://ID."
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(
            help="Train on several devices with JAX. data=4,model=2 divides batches among four "
            "groups of devices, and layers among the two devices of each group.",
            callback=read_mesh,
            rich_help_panel=DEVICES,
        ),
    ] = None,
    fully_sharded: Annotated[
        bool,
        typer.Option(
            help="With --mesh: divide weights among the data groups, too.", rich_help_panel=DEVICES
        ),
    ] = False,
):
    """Train a model, test it, export it and write its card.

    After an interruption, run the same command again to resume. Options that are left out have a
    default for each task, see keras_attention/tasks/recipes/.
    """
    source, numbers = ctx.obj
    keywords = source.list_keywords()  # checks the files before Keras is imported

    from keras_attention.cli import train as command
    from keras_attention.cli.sources import Source

    command.train(
        builder,
        output,
        Source(**keywords),
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
    split: Annotated[str, typer.Option(help="Split to score: train, dev or test.")] = "test",
    label_column: Column = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    on_error: OnError = None,
    data_dir: DataDir = None,
    kind: With = None,
):
    """Score a trained model, by default on the test split of the dataset it was trained on."""
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
            help="Text, image files, sound files, or classes to draw. - reads standard input."
        ),
    ] = None,
    file: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="File with one input on each line. - reads standard input.", callback=find_file
        ),
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Question to answer from --context. Can be repeated.")
    ] = None,
    context: Context = None,
    kind: With = None,
    chat: Annotated[
        bool,
        typer.Option(help="Chat with a dialogue model: each line of standard input is a turn."),
    ] = False,
    json: Annotated[bool, typer.Option(help="Print one JSON object for each input.")] = False,
    prefix: Annotated[
        str | None, typer.Option(help="Checkpoints: text to put before every input, as for T5.")
    ] = None,
):
    """Apply a trained model to text, images or recordings.

    Depending on the model, this labels, tags, parses, translates or continues text, answers
    questions, classifies or draws images, finds objects, or transcribes recordings.
    """
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
def explain(
    preset: Preset,
    text: Annotated[str, typer.Argument(metavar="INPUT", help="Text, image file, or question.")],
    output: Annotated[pathlib.Path, typer.Option(help="HTML file to write.")],
    target: Annotated[
        str | None,
        typer.Option(help="Name or number of the output to explain. Default: the prediction."),
    ] = None,
    context: Context = None,
):
    """Write a page that shows which parts of an input raised a prediction, and its attention."""
    from keras_attention.cli import explain as command

    command.explain(preset, text, output, target=target, context=context)


@app.command()
def export(
    preset: Annotated[
        pathlib.Path,
        typer.Argument(
            help="Trained model: its folder or name, or a .keras file.", callback=find_preset
        ),
    ],
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="File or folder to write. Default: a name in the folder of the model."),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="Format of the file: litert or saved_model.")
    ] = "litert",
    quantization: Annotated[
        Quantization | None,
        typer.Option(
            help="LiteRT only: float16, int8_weights, int4_weights or int8.", metavar="<name>"
        ),
    ] = None,
    batch_size: Annotated[
        int | None, Whole(max=1 << 16, help="Fixed batch size. Default: any.")
    ] = None,
    sequence_length: Annotated[
        int | None, Whole(max=LONGEST, help="Fixed length. Default: any.")
    ] = None,
    compatible_with: Annotated[
        list[Target] | None,
        typer.Option(
            help="LiteRT only: where the file has to run, which is tested: interpreter, gpu or "
            "web. Can be repeated.",
            metavar="<name>",
        ),
    ] = None,
    file: data_file("calibrate int8 on") = None,
    data_dir: DataDir = None,
):
    """Export a trained model to another format, quantization or fixed shape."""
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
        typer.Argument(help="A .keras file, a SavedModel or a .tflite file.", callback=find_file),
    ],
):
    """Show the signatures, ops and size of a model file."""
    from keras_attention.cli import inspect as command

    command.inspect(file)


@app.command()
def web(
    preset: Preset,
    output: Annotated[pathlib.Path, typer.Option(help="Output folder: new or empty.")],
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    example: Annotated[
        str | None, typer.Option(help="First input of the page: a text, or the path of an image.")
    ] = None,
):
    """Write a web page that runs a trained model in the browser, and shows its attention."""
    from keras_attention.cli import web as command

    command.web(preset, output, title=title, example=example)


@app.command()
def serve(
    preset: Preset,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1. 0 takes a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
):
    """Open a page that runs a trained model in the browser, from a local server."""
    from keras_attention.cli import web as command

    command.serve(preset, port, browser)


@app.command()
def lecture(
    name: Annotated[
        str | None, typer.Argument(help="Name of a script. Default: list all of them.")
    ] = None,
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for the figure and the numbers. Default: runs/lecture."),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Run in a tiny size, to test the script.")] = False,
):
    """Measure a claim about attention: print a table and draw a figure, in up to two minutes."""
    from keras_attention.cli import lecture as command

    command.lecture(name, output, quick)
