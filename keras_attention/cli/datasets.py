"""The data of the commands: from TFDS by name, from files, or by a name of this module."""

import pathlib

import numpy as np

from keras_attention import data
from keras_attention.cli.tasks import TASKS
from keras_attention.data.dates import LOCALES

DIGITS = "digits"
ABOUT_DIGITS = {
    "name": "handwritten digits of scikit-learn (the test set of UCI's Optical Recognition of "
    "Handwritten Digits)",
    "licence": "CC BY 4.0 (UCI Machine Learning Repository)",
    "notes": (
        "split by class with a fixed seed: a fifth for testing, an eighth of the rest for choosing "
        "the epoch, the others for training; the same people wrote digits of all three parts",
    ),
}


def load_digits(seed=0):
    """The 1,797 images (8, 8, 1) as `ka.data.Images`, every part with its share of each digit.

    A fifth is for testing, an eighth of the rest for choosing, the others for training.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "The digits come with scikit-learn, which is not installed: "
            "pip install 'keras-attention-zoo[data]'"
        ) from error
    digits = datasets.load_digits()
    images = (digits.images / 16.0).astype("float32")[..., None]
    parts = {
        name: (images[k], digits.target[k])
        for name, k in split_by_class(digits.target, seed).items()
    }
    return data.Images.from_arrays(**parts, labels=[str(digit) for digit in range(10)])


def split_by_class(labels, seed):
    """Indices of train, dev and test, stratified."""
    generator = np.random.default_rng(seed)
    parts = {"train": [], "dev": [], "test": []}
    for label in np.unique(labels):
        order = generator.permutation(np.flatnonzero(labels == label))
        test = round(len(order) / 5)
        dev = test + round((len(order) - test) / 8)
        for name, chosen in zip(parts, (order[dev:], order[test:dev], order[:test]), strict=True):
            parts[name].append(chosen)
    return {name: np.sort(np.concatenate(chosen)) for name, chosen in parts.items()}


DATES = "dates"
SIZES = {"train": 50_000, "dev": 1_000, "test": 2_000}
ABOUT_DATES = {
    "name": "dates of 1950 to 2049 as people write them in "
    f"{len(LOCALES)} locales, made with Babel, and what they are in ISO 8601",
    "licence": "Unicode License v3 (CLDR)",
    "notes": (
        "made up with a fixed seed: every day belongs to one part of the data only, languages and "
        "forms to all; forms that could be read as another date in one of the locales are left out",
    ),
}


def load_dates(seed=0):
    """The dates as `ka.data.Pairs`: as people write them, and in ISO 8601."""
    parts = {
        part: [date[:2] for date in data.dates(part, size, seed=seed)]
        for part, size in SIZES.items()
    }
    return data.Pairs.from_lists(**parts)


POLARITY = "sentence_polarity"
ABOUT_POLARITY = {
    "name": "sentence polarity, version 1.0 (Pang and Lee, 2005), as NLTK publishes it",
    "licence": "CC BY 4.0",
    "notes": (
        "split by class with a fixed seed: a tenth for testing, a tenth for choosing the epoch, "
        "the others for training",
    ),
}


# Data sets with a name of their own: how to load them, and their entry in the model card.
NAMED = {
    DIGITS: (lambda data_dir: load_digits(), ABOUT_DIGITS),
    DATES: (lambda data_dir: load_dates(), ABOUT_DATES),
    POLARITY: (data.sentence_polarity, ABOUT_POLARITY),
}

# Known licences of data sets, for the model card.
LICENCES = {
    "universal_dependencies/en_ewt": "CC BY-SA 4.0",
    "fashion_mnist": "MIT",
    "tiny_shakespeare": "the text is in the public domain",
    "mnist": "CC BY-SA 3.0",
}


def load_data(
    task,
    *,
    dataset=None,
    files=None,
    label_column=None,
    text_column=None,
    languages=None,
    data_dir=None,
):
    """The data for `task`: a `Tagged`, a `Texts`, a `Pairs`, a `Corpus` or an `Images`.

    Args:
        task: str, a name in `TASKS`.
        dataset: str, a name in TFDS, or one in `NAMED`.
        files: dict, `"train"`, `"dev"`, `"test"` -> path or None, instead of a data set.
        label_column, text_column: str or None.
        languages: str, `de-en` for aligned files, which end in `.de` and `.en`; or None.
        data_dir: where data sets are kept, or None.
    """
    files = {part: path for part, path in (files or {}).items() if path is not None}
    if (dataset is None) == (not files):
        raise ValueError(
            "Name a data set with --dataset"
            + (", or give files with --train, --dev and --test" if task in FROM_FILES else "")
            + (": both were given." if files else ".")
        )
    if files:
        loaded = _from_files(task, files, label_column, text_column, languages)
    elif dataset in NAMED:
        loaded = NAMED[dataset][0](data_dir)
    else:
        columns = {"label_column": label_column, "text_column": text_column}
        loaded = data.from_tfds(dataset, data_dir=data_dir, **columns)
    if not isinstance(loaded, TASKS[task].KIND):
        other = _task_of(loaded)
        holds = other.HOLDS if other else f"a ka.data.{type(loaded).__name__}"
        raise ValueError(
            f"{dataset or 'These files'}: {holds}, which {task} does not take"
            + (f"; {other.TASK} does." if other else ".")
        )
    return loaded


PAIRS = ("seq2seq_recurrent", "seq2seq_transformer")
RUNNING = ("causal_language_model",)
FROM_FILES = ("sequence_labeler", "text_classifier", *PAIRS, *RUNNING)


def _task_of(loaded):
    return next((task for task in TASKS.values() if isinstance(loaded, task.KIND)), None)


def _from_files(task, files, label_column, text_column, languages):
    """Reads files as the task wants, or as texts, CoNLL-U or CoNLL by their names."""
    if task in PAIRS:
        return _pairs(files, label_column, text_column, languages)
    if languages is not None:
        raise ValueError(
            f"--languages {languages} is for pairs of texts, which {task} does not take."
        )
    if task in RUNNING:
        return data.from_plain_text(**files)
    kinds = {_kind(path) for path in files.values()}
    if len(kinds) > 1:
        raise ValueError(
            f"The files are of several kinds, {' and '.join(sorted(kinds))}: give one."
        )
    if kinds == {"CoNLL-U"}:
        return data.from_conllu(**files, column=_given(label_column, "upos"))
    if kinds == {"texts"}:
        return data.from_text_files(
            **files,
            text_column=_given(text_column, "text"),
            label_column=_given(label_column, "label"),
        )
    try:
        column = -1 if label_column is None else int(label_column)
    except ValueError as error:
        raise ValueError(
            f"--label-column {label_column}: the columns of CoNLL files have numbers, from 0; "
            "-1 is the last. Names are for CoNLL-U files, which end in .conllu."
        ) from error
    return data.from_conll(**files, label_column=column)


def _pairs(files, label_column, text_column, languages):
    """Aligned files if there are languages, or else files with two columns."""
    if languages is None:
        columns = _given(text_column, "source"), _given(label_column, "target")
        return data.from_pair_files(**files, columns=columns)
    both = languages.split("-")
    if len(both) != 2 or not all(both):
        raise ValueError(
            f"--languages {languages}: expected two, such as de-en, for files that end in .de and "
            ".en: --train corpus/train is corpus/train.de and corpus/train.en."
        )
    aligned = {
        part: tuple(_of_language(path, language) for language in both)
        for part, path in files.items()
    }
    return data.from_pair_files(**aligned)


def _given(value, default):
    return default if value is None else value


def check_columns(task, *, dataset, files, label_column=None, text_column=None, languages=None):
    """Refuses options of the command line that do not apply to the data.

    Args:
        task, dataset, files: as for `load`.
        label_column, text_column, languages: str as typed, or None.
    """
    given = {"label_column": label_column, "text_column": text_column, "languages": languages}
    if dataset is not None:
        what, allowed = (
            f"--dataset {dataset}",
            () if dataset in NAMED else ("label_column", "text_column"),
        )
    elif task in RUNNING:
        what, allowed = "running text", ()
    elif task in PAIRS:
        allowed = ("label_column", "text_column") if languages is None else ("languages",)
        what = "pairs of texts" if languages is None else "aligned files"
    else:
        texts = any(_kind(path) == "texts" for path in files.values() if path is not None)
        what = "texts" if texts else "files of tagged sentences"
        allowed = ("label_column", "text_column") if texts else ("label_column",)
    if strange := [
        name for name, value in given.items() if value is not None and name not in allowed
    ]:
        option = strange[0].replace("_", "-")
        raise ValueError(f"--{option} {given[strange[0]]} is not for {what}: leave it out.")


def _of_language(path, language):
    """`corpus/train` as `corpus/train.de`, or that gzipped where only this is there."""
    plain = pathlib.Path(f"{path}.{language}")
    gzipped = pathlib.Path(f"{plain}.gz")
    return gzipped if gzipped.exists() and not plain.exists() else plain


def _kind(path):
    path = pathlib.Path(path)
    if path.is_dir() or {".csv", ".tsv", ".jsonl"} & set(path.suffixes[-2:]):
        return "texts"
    return "CoNLL-U" if ".conllu" in path.suffixes else "CoNLL"


def describe_data(loaded, *, dataset=None, files=None, languages=None):
    """The entry of the data in the model card, a dict."""
    counts = _task_of(loaded).count_examples(loaded)
    if dataset in NAMED:
        return {**NAMED[dataset][1], "counts": counts}
    names = [pathlib.Path(path).name for path in (files or {}).values() if path is not None]
    return {
        "name": dataset or ", ".join(names) + (f" ({languages})" if languages else ""),
        "licence": LICENCES.get(dataset),
        "counts": counts,
        "notes": ("TensorFlow Datasets, official splits",) if dataset else (),
    }
