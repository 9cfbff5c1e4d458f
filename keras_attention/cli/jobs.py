"""The `train` and `export` commands: from a data set to a finished preset."""

import contextlib
import json
import pathlib
import shlex
import sys
import time

from keras_attention.cli.arguments import write_options
from keras_attention.cli.printing import Interrupted, keep_informed, say, show_table
from keras_attention.cli.progress import show_epochs
from keras_attention.core.lazy import visualization
from keras_attention.export import card
from keras_attention.export.checks.formatting import format_score, format_size
from keras_attention.export.checks.runner import load_keras_model
from keras_attention.files import manifest
from keras_attention.files.io import write_json
from keras_attention.files.manifest import check_unchanged
from keras_attention.tasks import recipes
from keras_attention.tasks.advice import advise
from keras_attention.tasks.exporting import (
    choose_name,
    export_all,
    export_model,
    keep_preprocessing,
    name_shape,
)
from keras_attention.tasks.folders import CARD, FORMATS, SCORES, find_model_file, read_any_manifest
from keras_attention.tasks.generators import OutOfTime
from keras_attention.tasks.registry import get_task_class
from keras_attention.tasks.run_state import read_history
from keras_attention.tasks.training import load_trained, train_model
from keras_attention.training.scores.class_scores import ClassScores

PRIVATE = ("--data-dir",)  # options that say where things lie on one machine
EXAMPLES = 4  # batches of the development set that every exported file is compared on
GRACE = 38.0  # seconds after the minutes of a run: the last scoring begins within them
TESTED = ("keras", "litert", "litert-int8")  # a SavedModel equals the model to 1e-5, as verified


def run_job(task, data, recipe, folder, about, started=None, *, trained=False, finishes=True):
    """Train `task` on a data set, fill `folder` with the preset, and print a summary.

    Args:
        task: `Task`.
        data: its data set.
        recipe: `Recipe`.
        folder: `RunFolder`.
        about: dict, the description of the data for the card.
        started: float, by `time.perf_counter`, the start of the recipe's minutes, or None for now.
        trained: bool, whether another process has trained it in `folder`.
        finishes: bool, whether this process exports and tests it. If not, one with TensorFlow does.

    Returns:
        dict, the content of `scores.json`, or None with `finishes=False`.
    """
    started = time.perf_counter() if started is None else started
    job = task.make_job(data.train, data.dev, recipe)
    folder.start()
    said = task.describe_data(data)
    about["notes"] = (*about["notes"], *said)
    reserved = reserve_seconds(task, recipe)
    if trained:
        best, history = load_trained(job, recipe, folder)
    else:
        introduce(job, folder, about, said)
        spent = time.perf_counter() - started + reserved
        try:
            with show_epochs(job, recipe, folder) as lines:
                best, history = train_model(job, recipe, folder, callbacks=[lines], spent=spent)
        except KeyboardInterrupt:
            count = len(read_history(folder.history)) if folder.history.exists() else 0
            raise Interrupted(
                f"interrupted after {count} of {recipe.epochs} epochs, which are kept in "
                f"{folder.path}: run the same command again to go on."
            ) from None
        if advice := advise(job, recipe, history):
            options = {name: f"--{name.replace('_', '-')}" for name in recipes.list_options()}
            say(write_options(advice, options))
    if not finishes:
        return None
    deadline = None if recipe.minutes is None else time.perf_counter() + reserved + GRACE
    try:
        with folder.explain_full_disk():
            scores = finish_job(task, job, data, recipe, folder, about, best, history, deadline)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after the training, which is kept in {folder.path}: run the same command "
            "again to export and test the model."
        ) from None
    print_summary(folder, scores)
    return scores


def introduce(job, folder, about, said):
    """Print the sizes of the data and of the model."""
    counts = ", ".join(f"{count:,} {what}" for what, count in about["counts"].items())
    say(f"{about['name']}: {counts}")
    for sentence in said:
        say(sentence)
    say(f"{job.model.name}: {job.model.count_params():,} parameters")
    if folder.resumed:
        say(f"going on with the unfinished run in {folder.path}")


def reserve_seconds(task, recipe):
    """Return the seconds of the recipe's minutes that are kept for writing files."""
    if recipe.minutes is None:
        return 0.0
    return min(max(0.0, task.finishing_seconds - GRACE), 30 * recipe.minutes)


def finish_job(task, job, data, recipe, output, about, best, history, deadline=None):
    """Save, export, verify and test the trained model, and fill `output` (a `RunFolder`).

    The test set is read here, for the weights that were chosen on the development set: once by the
    model, and once by each of the LiteRT files made of it.

    Args:
        deadline: float, by `time.perf_counter`, or None. After it, slow files are not scored.

    Returns:
        dict, the content of `scores.json`.
    """
    task.example = task.find_example(data)
    task.tune(data.dev)
    metadata = {
        **task.metadata,
        "parameters": task.model.count_params(),
        "licence": about.get("licence"),
    }
    with output.collect_results() as result:
        task.save_files(result)
        say("exporting and verifying: SavedModel, LiteRT float32, LiteRT int8 weights")
        examples = [inputs for inputs, _ in job.dev.take(EXAMPLES).as_numpy_iterator()]
        exportable, reports = task.make_exportable(task.model), []
        for name, make in export_all(exportable, result, examples=examples, metadata=metadata):
            with keep_informed(f"exporting and verifying {name}"):
                reports.append(make())
        has_test = len(data.test) > 0
        say(
            "scoring the test set"
            if has_test
            else "there is no test set to score: --test names one"
        )
        tested = {
            kind: score_file(task, result / FORMATS[kind], data.test, deadline) if has_test else {}
            for kind in TESTED
        }
        scores = {
            "best_epoch": best[1],
            "dev": {job.monitor: round(best[0], 6)},
            "test": tested,
            **list_classes(tested["keras"]),
            "training_seconds": round(sum(epoch["seconds"] for epoch in history), 1),
            "history": history,
        }
        about["confusion"] = draw_confusion(tested["keras"], result)
        about["command"] = find_command()
        pictures = task.draw_examples(data, result)
        write_json(result / SCORES, scores)
        text = card.write_card(task.facts, recipe, scores, reports, pictures, about)
        (result / CARD).write_text(text, "utf-8")
    return scores


def list_classes(scores):
    """Return what `scores.json` says of classes: a dict, empty where `scores` are of no classes."""
    if not isinstance(scores, ClassScores):
        return {}
    confusion = {} if scores.confusion is None else {"confusion": scores.confusion}
    return {"classes": scores.classes, **confusion}


def draw_confusion(scores, folder):
    """Draw the confusion matrix into `folder`; return the name of the picture, or None."""
    confusion = list_classes(scores).get("confusion")
    if not confusion:
        return None
    picture = "confusion.png"
    visualization.confusion_map(confusion, title="Confusion matrix", path=folder / picture)
    return picture


def find_command(arguments=None):
    """Return the command that is running, without paths that only this machine has."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    kept = []
    while arguments:
        word = arguments.pop(0)
        if word in PRIVATE:
            arguments = arguments[1:]
        elif not word.startswith(tuple(f"{option}=" for option in PRIVATE)):
            kept.append(_portable(word))
    return shlex.join(["keras-attention", *kept])


def _portable(word):
    """Return an absolute path as its last part; everything else as it is."""
    return pathlib.Path(word).name if pathlib.Path(word).is_absolute() else word


def score_file(task, path, examples, deadline=None):
    """Return {name: score} of a file of `task` on raw examples, or {} without enough time."""
    with keep_informed(f"scoring {path.name} on the test set"):
        # As JSON has it, which is what the files say.
        opened = type(task).open_file(path, json.loads(json.dumps(task.metadata)))
        opened.deadline = deadline
        try:
            return opened.compute_scores(examples, "The test part")
        except OutOfTime as error:
            found = str(error)
    say(
        f"{path.name} is not scored: the time is over ({found}). `keras-attention evaluate` with "
        "the folder and the test file does it."
    )
    return {}


def print_summary(output, scores):
    """Print scores, sizes and paths of the files."""
    rows = []
    for kind, name in FORMATS.items():
        tested = scores["test"].get(kind)
        found = ", ".join(format_score(*pair) for pair in tested.items()) if tested else "-"
        rows.append((kind, found, format_path_size(output.path / name), output.path / name))
    measured = ", ".join(max(scores["test"].values(), key=len))
    show_table(("file", f"test {measured}", "size", "path"), rows, title="What was made")
    say(f"card, scores and pictures: {output.path}")


def format_path_size(path):
    """Return the bytes of a file or folder as readable text."""
    return format_size(manifest.count_bytes(path))


def export_file(path, output, *, format, quantization, batch_size, sequence_length, **options):
    """Export the Keras model of a preset, or any other `.keras` file.

    Args:
        path: folder of a preset, or a `.keras` file.
        output: path to write, or None for a name in the preset.
        options: `compatible_with`, as for `ka.export.to_litert`, and `examples`, a function of the
            task that gives batches of inputs.

    Returns:
        `ka.export.ExportReport`.
    """
    path = pathlib.Path(path)
    folder, file = find_model_file(path, None if path.suffix == ".keras" else "keras")
    known = read_any_manifest(folder)
    find_examples = options.pop("examples")
    if "task" in known:
        task = get_task_class(known["task"]).open_file(file, known)
        model = task.make_exportable(task.model)
    else:
        check_unchanged(file)
        task, model = None, load_keras_model(file)
    examples = None
    if task is not None:
        examples = find_examples(task) if quantization == "int8" else task.make_examples()
    has_length = any(None in tensor.shape[1:] for tensor in model.inputs)
    shape = name_shape(batch_size, sequence_length, has_length)
    output = pathlib.Path(output or folder / choose_name(format, quantization, shape))
    beside = contextlib.nullcontext()
    if task is not None and output.parent.resolve() != folder.resolve():
        beside = keep_preprocessing(task.preprocessor, output)
    with beside:
        return export_model(
            model,
            output,
            format=format,
            quantization=quantization,
            batch_size=batch_size,
            sequence_length=sequence_length,
            examples=examples,
            metadata={name: value for name, value in known.items() if name != "files"},
            **options,
        )
