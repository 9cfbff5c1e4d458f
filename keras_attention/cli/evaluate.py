"""`evaluate` and `predict`: a trained model on labelled data, and on typed texts or pictures."""

from keras_attention.cli import datasets
from keras_attention.cli.console import format_score, show_table
from keras_attention.cli.folder import find_model_file, read_manifest
from keras_attention.cli.tasks import TASKS

SPLITS = ("train", "dev", "test")


def evaluate(model, *, dataset, file, split, label_column, text_column, data_dir, kind):
    """Prints the scores of `model` on one split of a data set, or on a file."""
    folder, path = find_model_file(model, kind)
    manifest = read_manifest(folder)
    if split not in SPLITS:
        raise ValueError(f"--split {split}: expected one of {', '.join(SPLITS)}.")
    dataset = manifest.get("dataset") if dataset is None and file is None else dataset
    if dataset is None and file is None:
        raise ValueError("The model was trained on files: name one with --file, or a --dataset.")
    datasets.check_columns(
        manifest["task"],
        dataset=dataset,
        files={split: file},
        label_column=label_column,
        text_column=text_column,
    )
    loaded = datasets.load_data(
        manifest["task"],
        dataset=dataset,
        files={split: file},
        label_column=manifest.get("label_column") if label_column is None else label_column,
        text_column=manifest.get("text_column") if text_column is None else text_column,
        languages=None if dataset else manifest.get("languages"),
        data_dir=data_dir,
    )
    where = str(file) if file else f"{dataset} ({split})"
    task = TASKS[manifest["task"]]
    run = task.load_runner(path, manifest)
    scores = task.compute_scores(run, folder, manifest, getattr(loaded, split), where)
    if not scores:
        raise ValueError(f"{dataset or file} has no {split} part.")
    show_table(
        ("score", ""),
        [(name, format_score(name, value)) for name, value in scores.items()],
        title=f"{path} on {where}",
    )


def predict(model, inputs, *, kind, options):
    """Prints the prediction of the model for each of `inputs`, texts or picture files.

    Args:
        options: dict of options that only some tasks take; None or False where not given.
    """
    folder, path = find_model_file(model, kind)
    manifest = read_manifest(folder)
    task = TASKS[manifest["task"]]
    given = [name for name, value in options.items() if value not in (None, False)]
    if strange := [name for name in given if name not in task.OPTIONS]:
        flag = strange[0].replace("_", "-")
        raise ValueError(f"--{flag} is not for models of {task.TASK}: leave it out.")
    task.print_predictions(task.load_runner(path, manifest), folder, manifest, inputs, options)
