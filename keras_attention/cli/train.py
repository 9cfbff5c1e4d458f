"""`train`: from data to a folder with a tested, exported model."""

import dataclasses

import keras

from keras_attention import export, sharing
from keras_attention.cli import card, datasets, recipes
from keras_attention.cli.console import Interrupted, format_score, say, show_table
from keras_attention.cli.fit import fit
from keras_attention.cli.folder import (
    CARD,
    FORMATS,
    LITERT,
    LITERT_INT8,
    MODEL,
    SAVED_MODEL,
    SCORES,
    Folder,
)
from keras_attention.cli.generating_files import get_generation_options
from keras_attention.cli.tasks import TASKS
from keras_attention.data import manifest
from keras_attention.data.files import write_json
from keras_attention.export.formatting import format_size


def train(task, output, *, dataset, files, columns, data_dir, options):
    """Trains `task` on a data set or on files and fills the folder `output`."""
    recipe = recipes.choose_recipe(task, dataset, options)
    files = {part: str(path) for part, path in files.items() if path is not None}
    source = {"dataset": dataset, **columns}
    settings = {
        "task": task,
        "files": files,
        **source,
        "recipe": dataclasses.asdict(recipe),
    }
    folder = Folder(output, settings)
    datasets.check_columns(task, dataset=dataset, files=files, **columns)
    loaded = datasets.load_data(task, files=files, data_dir=data_dir, **source)
    about = datasets.describe_data(
        loaded, dataset=dataset, files=files, languages=columns.get("languages")
    )
    keras.utils.set_random_seed(recipe.seed)
    run_job(TASKS[task].make_job(loaded, recipe, source, about), recipe, folder)


def run_job(job, recipe, folder):
    """Trains, finishes and sums up one job; returns its scores."""
    folder.start()
    counts = ", ".join(f"{count:,} {what}" for what, count in job.about["counts"].items())
    say(f"{job.about['name']}: {counts}")
    say(f"{job.model.name}: {job.model.count_params():,} parameters")
    if folder.resumed:
        say(f"going on with the unfinished run in {folder.path}")
    best, history = fit(job, recipe, folder)
    try:
        with folder.explain_full_disk():
            scores = finish_job(job, recipe, folder, best, history)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after the training, which is kept in {folder.path}: run the same command "
            "again to export and test the model."
        ) from None
    print_summary(folder, scores)
    return scores


EXAMPLES = 4  # batches of the development set that every exported file is compared on
TESTED = ("keras", "litert", "litert-int8")  # a SavedModel equals the model to 1e-5, as verified


def finish_job(job, recipe, output, best, history):
    """Saves, exports, verifies and tests the trained model, and fills `output` (a `Folder`).

    The test set is read here, for the weights that were chosen on the development set: once by the
    model, and once by each of the LiteRT files made of it.

    Returns:
        dict, the content of `scores.json`.
    """
    model = sharing.copy_model(job.model)  # without the optimizer: a third of the size on disk
    with output.collect_results() as result:
        model.save(result / MODEL)
        job.sidecars(result)
        manifest.record_files(result, MODEL)
        say("exporting and verifying: SavedModel, LiteRT float32, LiteRT int8 weights")
        reports = export_all(model, job, result)
        say("scoring the test set" if job.test else "there is no test set to score")
        scores = {
            "best_epoch": best[1],
            "dev": {job.monitor: round(best[0], 6)},
            "test": {kind: _test(job, result / FORMATS[kind]) for kind in TESTED},
            "training_seconds": round(sum(epoch["seconds"] for epoch in history), 1),
            "history": history,
        }
        pictures = job.picture(model, result)
        write_json(result / SCORES, scores)
        text = card.write_card(job, recipe, scores, reports, pictures, model.count_params())
        (result / CARD).write_text(text, "utf-8")
    return scores


def export_all(model, job, result):
    """The three exports into the folder `result`; each raises ExportError if it is not right."""
    examples = [inputs for inputs, _ in job.dev.take(EXAMPLES).as_numpy_iterator()]
    common = {
        "examples": examples,
        "metadata": job.metadata,
        **get_generation_options(job.metadata),
    }
    return [
        export.to_saved_model(model, result / SAVED_MODEL, **common),
        export.to_litert(model, result / LITERT, **common),
        export.to_litert(model, result / LITERT_INT8, quantization="int8_weights", **common),
    ]


def _test(job, path):
    """Scores of a file on the test set; none when there is no test set."""
    task = TASKS[job.task]
    run = task.load_runner(path, job.metadata)
    return task.compute_scores(run, path.parent, job.metadata, job.test, "The test part")


def print_summary(output, scores):
    """Prints scores, sizes and paths of the files."""
    rows = []
    for kind, name in FORMATS.items():
        tested = scores["test"].get(kind)
        found = ", ".join(format_score(*pair) for pair in tested.items()) if tested else "-"
        rows.append((kind, found, format_path_size(output.path / name), output.path / name))
    measured = ", ".join(scores["test"]["keras"])
    show_table(("file", f"test {measured}", "size", "path"), rows, title="What was made")
    say(f"card, scores and pictures: {output.path}")


def format_path_size(path):
    """Bytes of a file or folder, readable."""
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return format_size(sum(file.stat().st_size for file in files))
