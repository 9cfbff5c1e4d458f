"""`evaluate`: the score of a trained model on labelled data."""

from keras_attention.cli import folder as folders
from keras_attention.cli import sources
from keras_attention.cli.console import show_table, shown
from keras_attention.cli.predict import read_manifest
from keras_attention.cli.tasks import TASKS

SPLITS = ("train", "dev", "test")


def evaluate(model, *, dataset, file, split, label_column, text_column, data_dir, kind):
    """Prints the scores of `model` on one split of a data set, or on a file."""
    folder, path = folders.locate(model, kind)
    manifest = read_manifest(folder)
    if split not in SPLITS:
        raise ValueError(f"--split {split}: expected one of {', '.join(SPLITS)}.")
    dataset = dataset or (manifest["dataset"] if file is None else None)
    if dataset is None and file is None:
        raise ValueError("The model was trained on files: name one with --file, or a --dataset.")
    loaded = sources.load(
        manifest["task"],
        dataset=dataset,
        files={split: file},
        label_column=label_column or manifest.get("label_column"),
        text_column=text_column or manifest.get("text_column"),
        languages=None if dataset else manifest.get("languages"),
        data_dir=data_dir,
    )
    where = str(file) if file else f"{dataset} ({split})"
    task = TASKS[manifest["task"]]
    run = task.load(path, manifest)
    scores = task.scores(run, folder, manifest, getattr(loaded, split), where)
    if not scores:
        raise ValueError(f"{dataset or file} has no {split} part.")
    show_table(
        ("score", ""),
        [(name, shown(name, value)) for name, value in scores.items()],
        title=f"{path} on {where}",
    )
