"""Functions that train, export, test and document a task, for `train` and `demo`."""

import json
import pathlib
import shlex
import sys
import time

from keras_attention.cli.printing import (
    Interrupted,
    keep_informed,
    say,
    show_table,
    write_options,
)
from keras_attention.cli.progress import show_epochs
from keras_attention.core.lazy import visualization
from keras_attention.export import card
from keras_attention.export.checks.formatting import format_score, format_size
from keras_attention.files import manifest
from keras_attention.files.io import write_json
from keras_attention.tasks import recipes
from keras_attention.tasks.exporting import export_all
from keras_attention.tasks.fitting import advise
from keras_attention.tasks.folders import CARD, FORMATS, SCORES
from keras_attention.tasks.generators import OutOfTime
from keras_attention.tasks.run_state import read_history
from keras_attention.tasks.training import load_trained, train_model
from keras_attention.training.scores.class_scores import ClassScores

PRIVATE = "--data-dir"  # an option whose value is only valid on this machine
EXAMPLES = 4  # number of development batches for comparing exported files with the model
GRACE = 38.0  # scoring may start up to this many seconds after the time limit
TESTED = ("keras", "litert", "litert-int8")  # a SavedModel agrees with Keras within 1e-5


def run_job(task, data, recipe, folder, about, started=None, *, trained=False, finishes=True):
    """Train a task on a dataset, write the preset to a folder, and print a summary.

    Args:
        task: `Task` to train.
        data: `ka.data.DataSet` with the splits train, dev and test.
        recipe: `Recipe`, the hyperparameters.
        folder: `RunFolder` to write to.
        about: dict from `Source.describe`, which describes the data in the model card.
        started: float, the time.perf_counter() value at the start of the run, for its time limit.
            None means now.
        trained: bool, whether another process has already trained the task in `folder`.
        finishes: bool, whether this process exports and tests the task. If not, another process,
            which runs on TensorFlow, must do this.

    Returns:
        dict, the content of `scores.json`. None if `finishes` is False.
    """
    started = time.perf_counter() if started is None else started
    job = task.make_job(data.train, data.dev, recipe)
    folder.start()
    notes = task.describe_data(data)
    about["notes"] = (*about["notes"], *notes)
    reserved = reserve_seconds(task, recipe)
    if trained:
        best, history = load_trained(job, recipe, folder)
    else:
        counts = ", ".join(f"{count:,} {unit}" for unit, count in about["counts"].items())
        say(f"{about['name']}: {counts}")
        for note in notes:
            say(note)
        say(f"{job.model.name}: {job.model.count_params():,} parameters")
        if folder.resumed:
            say(f"resuming the unfinished run in {folder.path}")
        spent = time.perf_counter() - started + reserved
        try:
            with show_epochs(job, recipe, folder) as lines:
                best, history = train_model(job, recipe, folder, callbacks=[lines], spent=spent)
        except KeyboardInterrupt:
            count = len(read_history(folder.history)) if folder.history.exists() else 0
            raise Interrupted(
                f"interrupted after {count} of {recipe.epochs} epochs, which are saved in "
                f"{folder.path}. Run the same command again to resume."
            ) from None
        if advice := advise(job, recipe, history):
            options = {name: f"--{name.replace('_', '-')}" for name in recipes.list_options()}
            say(write_options(advice, options))
    if not finishes:
        return None
    deadline = None if recipe.minutes is None else time.perf_counter() + reserved + GRACE
    try:
        with folder.explain_full_disk():
            scores = finish_job(task, job, data, folder, about, recipe, best, history, deadline)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after the training, which is saved in {folder.path}. Run the same "
            "command again to export and test the model."
        ) from None
    print_summary(folder, scores)
    return scores


def reserve_seconds(task, recipe):
    """Return the number of seconds that exports and scores need within the recipe's time limit.

    `task` is a `Task`, a model with its preprocessing. `recipe` is a `Recipe`, the hyperparameters.
    The result is 0 if the recipe has no time limit.
    """
    if recipe.minutes is None:
        return 0.0
    return min(max(0.0, task.finishing_seconds - GRACE), 30 * recipe.minutes)


def finish_job(task, job, data, output, about, recipe, best, history, deadline):
    """Save, export, verify and test the trained model, and write everything to a `RunFolder`.

    Only this function uses the test split, after the development split has selected the weights.
    The Keras model and each LiteRT file are scored once.

    Args:
        task: the trained `Task`.
        job: `Job` from `task.make_job`, the model and data of the training.
        data: `ka.data.DataSet` with the splits train, dev and test.
        output: `RunFolder` to write to.
        about: dict that describes the data in the model card.
        recipe: `Recipe`, the hyperparameters.
        best, history: the results of `train_model`.
        deadline: a time.perf_counter() value, after which slow files are not scored. None for no
            deadline.

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
        examples = task.take_inputs(job.dev, EXAMPLES)
        exportable, reports = task.make_exportable(task.model), []
        for name, make in export_all(exportable, result, examples=examples, metadata=metadata):
            with keep_informed(f"exporting and verifying {name}"):
                reports.append(make())
        if len(data.test):
            say("scoring the test set")
            files = {kind: result / FORMATS[kind] for kind in TESTED}
            tested = {k: score_file(task, f, data.test, deadline) for k, f in files.items()}
        else:
            say("There is no test set to score. Name its file with --test.")
            tested = {kind: {} for kind in TESTED}
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
        figures = task.draw_examples(data, result)
        write_json(result / SCORES, scores)
        text = card.write_card(task.facts, recipe, scores, reports, figures, about)
        (result / CARD).write_text(text, "utf-8")
    return scores


def list_classes(scores):
    """Return the entries of `scores.json` with the scores of each class and the confusion matrix.

    Return {} if `scores` is not a `ClassScores`.
    """
    if not isinstance(scores, ClassScores):
        return {}
    confusion = {} if scores.confusion is None else {"confusion": scores.confusion}
    return {"classes": scores.classes, **confusion}


def draw_confusion(scores, folder):
    """Save a figure of the confusion matrix in a folder, and return its file name.

    Return None if the scores have no confusion matrix.
    """
    confusion = list_classes(scores).get("confusion")
    if not confusion:
        return None
    name = "confusion.png"
    visualization.confusion_map(confusion, title="Confusion matrix", path=folder / name)
    return name


def find_command(arguments=None):
    """Return the command line of this process as a str, for the model card.

    `--data-dir` and the folders of absolute paths are left out, because they are only valid on this
    machine. `arguments` is a list of str. None uses the arguments of the process.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    words = []
    while arguments:
        word = arguments.pop(0)
        if word == PRIVATE:
            arguments = arguments[1:]
        elif not word.startswith(f"{PRIVATE}="):
            path = pathlib.Path(word)
            words.append(path.name if path.is_absolute() else word)
    return shlex.join(["keras-attention", *words])


def score_file(task, path, examples, deadline=None):
    """Score a model file of a task on raw examples, and return {name: score}.

    `path` is the path of the file, and `task` the `Task`, a model with its preprocessing. Return {}
    if the deadline (a time.perf_counter() value, or None) is exceeded.
    """
    with keep_informed(f"scoring {path.name} on the test set"):
        # Convert to JSON and back, so that the values are those of a manifest that is read later.
        opened = type(task).open_file(path, json.loads(json.dumps(task.metadata)))
        opened.deadline = deadline
        try:
            return opened.compute_scores(examples, "The test part")
        except OutOfTime as error:
            count = str(error)
    say(
        f"{path.name} is not scored, because the time is over ({count}). Score it with "
        "`keras-attention evaluate`, the folder and the test file."
    )
    return {}


def print_summary(output, scores):
    """Print a table with the scores, sizes and paths of the model files in a `RunFolder`.

    `output` is the `RunFolder`, the output folder of a training run. `scores` is a dict, in which
    `"test"` is a dict from the format of a file to its scores.
    """
    rows = []
    for kind, name in FORMATS.items():
        tested = scores["test"].get(kind)
        shown = ", ".join(format_score(*pair) for pair in tested.items()) if tested else "-"
        rows.append((kind, shown, format_path_size(output.path / name), output.path / name))
    measured = ", ".join(max(scores["test"].values(), key=len))
    show_table(("file", f"test {measured}", "size", "path"), rows, title="Files")
    say(f"card, scores and figures: {output.path}")


def format_path_size(path):
    """Return the size of a file or folder as text, such as `1.2 MB`."""
    return format_size(manifest.count_bytes(path))
