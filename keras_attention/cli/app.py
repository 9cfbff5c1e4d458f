"""The commands. Each imports its work when it runs, so that help is quick."""

import pathlib
from typing import Annotated

import typer

from keras_attention.cli.mesh import read_mesh
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
    Language,
    Number,
    OnError,
    Preset,
    Quantization,
    SpeechTask,
    Target,
    TextColumn,
    Tokens,
    Whole,
    With,
    data_file,
    find_context,
    find_file,
    find_preset,
    read_freeze,
    read_names,
)

app = typer.Typer(
    help="Train, check, use and export attention models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def demo(
    name: Annotated[Demo, typer.Argument(help="What to show.")] = Demo.digits,
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

    command.demo(name.value, output, {"epochs": epochs, "seed": seed})


@app.command()
def train(
    builder: Builder,
    output: Annotated[pathlib.Path, typer.Option(help="Folder to fill: new, empty or unfinished.")],
    dataset: Dataset = None,
    train: data_file("train on") = None,
    dev: data_file("choose the best epoch on", likewise="--train") = None,
    test: data_file("test on", likewise="--train") = None,
    label_column: Column = None,
    text_column: TextColumn = None,
    languages: Annotated[
        str | None, typer.Option(help="Of aligned files: de-en for --train x is x.de and x.en.")
    ] = None,
    encoding: Encoding = None,
    on_error: OnError = None,
    turns: Annotated[
        int | None, Whole(max=1000, help="Of a dialogue that a reply is to, at most.")
    ] = None,
    image_size: Annotated[
        int | None, Whole(max=1 << 12, help="Pixels that pictures in folders are resized to.")
    ] = None,
    data_dir: DataDir = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--from", help="Folder or name of a trained model, or hf://ID, to go on from."
        ),
    ] = None,
    epochs: Annotated[int | None, EPOCHS] = None,
    minutes: Annotated[
        float | None,
        Number(min=0.0, help="End in so many and about one more, with all files made and scored."),
    ] = None,
    batch_size: Annotated[int | None, Whole(max=1 << 20, help="Examples in a batch.")] = None,
    learning_rate: Annotated[float | None, Number(min=0.0, help="The peak.")] = None,
    seed: Annotated[int | None, SEED] = None,
    num_layers: Annotated[
        int | None, Whole(max=1000, help="Blocks, of an encoder and of a decoder each.")
    ] = None,
    num_heads: Annotated[int | None, Whole(max=1000, help="Heads of each attention.")] = None,
    hidden_dim: Annotated[int | None, Whole(max=1 << 16, help="Of tokens between layers.")] = None,
    dropout: Annotated[
        float | None, Number(min=0.0, max=0.9, help="Share of numbers that training leaves out.")
    ] = None,
    chunk_size: Annotated[
        int | None,
        Whole(max=1 << 12, help="Of recordings: stream, by so many vectors of 40 ms at a time."),
    ] = None,
    max_length: Annotated[
        int | None,
        Whole(max=LENGTH, help="Tokens of an example at most: longer ones are left out or cut."),
    ] = None,
    lora_rank: Annotated[
        int | None, Whole(max=1 << 12, help="Train low-rank changes of this rank alone.")
    ] = None,
    lora_targets: Annotated[
        str | None,
        typer.Option(
            help="Projections that these change, such as query,key,value, or all; by default "
            "query,value.",
            callback=read_names,
        ),
    ] = None,
    freeze: Annotated[
        str | None,
        typer.Option(help="How many blocks from the bottom stay, or all.", callback=read_freeze),
    ] = None,
    layer_decay: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Of the learning rate from block to block.")
    ] = None,
    steps: Annotated[
        int | None, Whole(max=10_000_000, help="Batches of an epoch, of running text.")
    ] = None,
    tokens: Annotated[
        Tokens | None,
        typer.Option(
            help="What is read or written, of pairs, recordings and running text: characters, "
            "words or subwords.",
            metavar="<name>",
        ),
    ] = None,
    vocabulary_size: Annotated[
        int | None,
        typer.Option(min=5, max=1 << 20, help="Subwords to learn; with --from, to add."),
    ] = None,
    max_tokens: Annotated[
        int | None, Whole(max=1 << 24, help="Tokens of a batch, of pairs of texts.")
    ] = None,
    balance: Annotated[
        float | None,
        Number(min=0.0, max=1.0, help="How far rare classes or labels weigh more: 0 not, 1 fully."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="In front of every source, as T5 of --from hf:// wants.")
    ] = None,
    language: Language = None,
    task: SpeechTask = None,
    beam: Annotated[
        int | None, Whole(max=1000, help="Texts that the search holds; 1 is greedy.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Of pairs of texts: bleu, rouge or exact_match.")
    ] = None,
    length_penalty: Annotated[
        float | None, Number(min=0.0, max=10.0, help="Of that search; 0 prefers short texts.")
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
    if languages is None:  # with them, files are named without suffix
        for file in (train, dev, test):
            find_file(file)

    from keras_attention.cli import train as command
    from keras_attention.cli.sources import Source

    command.train(
        builder,
        output,
        Source(
            dataset=dataset,
            files={"train": train, "dev": dev, "test": test},
            label_column=label_column,
            text_column=text_column,
            languages=languages,
            encoding=encoding,
            on_error=on_error and on_error.value,
            turns=turns,
            image_size=image_size,
            data_dir=data_dir,
        ),
        preset=preset,
        options={
            "epochs": epochs,
            "minutes": minutes,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "seed": seed,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "hidden_dim": hidden_dim,
            "dropout": dropout,
            "chunk_size": chunk_size,
            "max_length": max_length,
            "lora_rank": lora_rank,
            "lora_targets": lora_targets,
            "freeze": freeze,
            "layer_decay": layer_decay,
            "steps": steps,
            "tokens": tokens and tokens.value,
            "vocabulary_size": vocabulary_size,
            "max_tokens": max_tokens,
            "balance": balance,
            "prefix": prefix,
            "language": language,
            "task": task,
            "beam": beam,
            "length_penalty": length_penalty,
            "score": score,
        },
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
        on_error=on_error and on_error.value,
        data_dir=data_dir,
        kind=kind and kind.value,
    )


@app.command()
def predict(
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
    top: Annotated[
        int | None, Whole(max=1_000_000, help="How many classes or candidates of each to show.")
    ] = None,
    group_entities: Annotated[
        bool, typer.Option(help="Show entities, where tags are B-..., I-... and O.")
    ] = False,
    beam: Annotated[int | None, Whole(max=1000, help="Texts that the search holds.")] = None,
    language: Language = None,
    task: SpeechTask = None,
    prefix: Annotated[
        str | None, typer.Option(help="In front of every source, as T5 of hf:// wants.")
    ] = None,
    threshold: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Least score of objects in pictures.")
    ] = None,
    words: Annotated[
        str | None, typer.Option(help="The only words of recordings, with spaces between them.")
    ] = None,
    invert: Annotated[bool, typer.Option(help="Swap black and white in pictures.")] = False,
    max_new_tokens: Annotated[int | None, Whole(max=LENGTH, help="How many to go on for.")] = None,
    temperature: Annotated[
        float | None, Number(min=0.0, help="Of chance in going on; 0 takes the best token.")
    ] = None,
    top_k: Annotated[int | None, Whole(max=2**31 - 1, help="Draw from the k best tokens.")] = None,
    top_p: Annotated[
        float | None, Number(min=0.0, max=1.0, help="Draw from the likeliest, up to this.")
    ] = None,
    seed: Annotated[int | None, SEED] = None,
):
    """Tag, parse, label, translate or go on with texts, answer questions, converse, name or find
    what is in pictures, draw some, or write what is said in recordings."""
    from keras_attention.cli import evaluate as command

    command.predict(
        preset,
        [*(inputs or []), *(question or [])],
        file=file,
        context=context,
        kind=kind and kind.value,
        chat=chat,
        as_json=json,
        prefix=prefix,
        options={
            "top": top,
            "group_entities": group_entities,
            "beam": beam,
            "language": language,
            "task": task,
            "threshold": threshold,
            "words": words,
            "invert": invert,
            "max_new_tokens": max_new_tokens,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
        },
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
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.litert,
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
        format=format.value,
        quantization=quantization and quantization.value,
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
