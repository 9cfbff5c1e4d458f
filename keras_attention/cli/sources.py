"""Where data comes from: TFDS by name, CoNLL files, or the digits of scikit-learn."""

import pathlib

from keras_attention import data
from keras_attention.cli import digits

KINDS = {"sequence_labeler": data.Tagged, "vision_transformer": data.Images}
HOLDS = {data.Tagged: "tagged sentences", data.Images: "images"}

# Known licences of data sets, for the model card.
LICENCES = {
    "universal_dependencies/en_ewt": "CC BY-SA 4.0",
    "fashion_mnist": "MIT",
    "mnist": "CC BY-SA 3.0",
}


def load(task, *, dataset=None, files=None, label_column=None, data_dir=None):
    """The data for `task`: a `Tagged` or an `Images`.

    Args:
        task: `"sequence_labeler"` or `"vision_transformer"`.
        dataset: str, a name in TFDS, or `digits`.
        files: dict, `"train"`, `"dev"`, `"test"` -> path or None, instead of a data set.
        label_column: str or None. data_dir: where TFDS keeps its data, or None.
    """
    files = {part: path for part, path in (files or {}).items() if path is not None}
    if (dataset is None) == (not files):
        raise ValueError(
            "Name a data set with --dataset"
            + (", or give files with --train, --dev and --test" if task in TEXT else "")
            + (": both were given." if files else ".")
        )
    if files:
        loaded = _from_files(files, label_column)
    elif dataset == digits.NAME:
        loaded = digits.load()
    else:
        loaded = data.from_tfds(dataset, label_column=label_column, data_dir=data_dir)
    if not isinstance(loaded, KINDS[task]):
        other = next(name for name, kind in KINDS.items() if isinstance(loaded, kind))
        raise ValueError(
            f"{dataset or 'These files'}: {HOLDS[type(loaded)]}, which {task} does not take; "
            f"{other} does."
        )
    return loaded


TEXT = ("sequence_labeler",)


def _from_files(files, label_column):
    """CoNLL-U by its name, `.conllu` or `.conllu.gz`; all others have numbered columns."""
    suffixes = {".conllu" in pathlib.Path(path).suffixes for path in files.values()}
    if suffixes == {True}:
        return data.from_conllu(**files, column=label_column or "upos")
    if suffixes == {True, False}:
        raise ValueError("Some of the files are CoNLL-U (.conllu) and some are not: give one kind.")
    try:
        column = -1 if label_column is None else int(label_column)
    except ValueError as error:
        raise ValueError(
            f"--label-column {label_column}: the columns of CoNLL files have numbers, from 0; "
            "-1 is the last. Names are for CoNLL-U files, which end in .conllu."
        ) from error
    return data.from_conll(**files, label_column=column)


def describe(loaded, *, dataset=None, files=None):
    """What the model card says about the data."""
    if dataset == digits.NAME:
        return {**digits.ABOUT, "counts": _counts(loaded)}
    names = [pathlib.Path(path).name for path in (files or {}).values() if path is not None]
    return {
        "name": dataset or ", ".join(names),
        "licence": LICENCES.get(dataset),
        "counts": _counts(loaded),
        "notes": ("TensorFlow Datasets, official splits",) if dataset else (),
    }


def _counts(loaded):
    counts = {}
    for part in ("train", "dev", "test"):
        split = getattr(loaded, part)
        if isinstance(loaded, data.Images):
            counts[f"{part} images"] = len(split.labels)
        elif split:
            counts[f"{part} sentences"] = len(split)
            counts[f"{part} tokens"] = sum(len(sentence.tokens) for sentence in split)
    return counts
