"""After training: files, proof, scores, picture and card, all in one move."""

from keras_attention import export, sharing
from keras_attention.cli import card, folder, writing
from keras_attention.cli.console import say, show_table, shown
from keras_attention.cli.tasks import TASKS
from keras_attention.export.text import size as readable_size

EXAMPLES = 4  # batches of the development set that every exported file is compared on
TESTED = ("keras", "litert", "litert-int8")  # a SavedModel equals the model to 1e-5, as verified


def finish(job, recipe, output, best, history):
    """Saves, exports, verifies and tests the trained model, and fills `output` (a `Folder`).

    The test set is read here, for the weights that were chosen on the development set: once by the
    model, and once by each of the LiteRT files made of it.

    Returns:
        dict, the content of `scores.json`.
    """
    model = sharing.copy_of(job.model)  # without the optimizer: a third of the size on disk
    with output.finishing() as result:
        model.save(result / folder.MODEL)
        job.sidecars(result)
        say("exporting and verifying: SavedModel, LiteRT float32, LiteRT int8 weights")
        reports = export_all(model, job, result)
        say("scoring the test set" if job.test else "there is no test set to score")
        scores = {
            "best_epoch": best[1],
            "dev": {job.monitor: round(best[0], 6)},
            "test": {kind: _test(job, result / folder.FORMATS[kind]) for kind in TESTED},
            "training_seconds": round(sum(epoch["seconds"] for epoch in history), 1),
            "history": history,
        }
        pictures = job.picture(model, result)
        folder.write_json(result / folder.SCORES, scores)
        text = card.write(job, recipe, scores, reports, pictures, model.count_params())
        (result / folder.CARD).write_text(text, "utf-8")
    return scores


def export_all(model, job, result):
    """The three exports into the folder `result`; each raises ExportError if it is not right."""
    examples = [inputs for inputs, _ in job.dev.take(EXAMPLES).as_numpy_iterator()]
    common = {"examples": examples, "metadata": job.metadata, **writing.options(job.metadata)}
    return [
        export.to_saved_model(model, result / folder.SAVED_MODEL, **common),
        export.to_litert(model, result / folder.LITERT, **common),
        export.to_litert(model, result / folder.LITERT_INT8, quantization="int8_weights", **common),
    ]


def _test(job, path):
    """Scores of a file on the test set; none when there is no test set."""
    task = TASKS[job.task]
    run = task.load(path, job.metadata)
    return task.scores(run, path.parent, job.metadata, job.test, "The test part")


def summarize(output, scores):
    """Prints what was made: scores, sizes and paths."""
    rows = []
    for kind, name in folder.FORMATS.items():
        tested = scores["test"].get(kind)
        found = ", ".join(shown(*pair) for pair in tested.items()) if tested else "-"
        rows.append((kind, found, size_of(output.path / name), output.path / name))
    measured = ", ".join(scores["test"]["keras"])
    show_table(("file", f"test {measured}", "size", "path"), rows, title="What was made")
    say(f"card, scores and pictures: {output.path}")


def size_of(path):
    """Bytes of a file or folder, readable."""
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return readable_size(sum(file.stat().st_size for file in files))
