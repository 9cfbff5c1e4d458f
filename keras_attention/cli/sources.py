"""Where data comes from: TFDS by name, files, or what the commands know by name themselves."""

import pathlib

from keras_attention import data
from keras_attention.cli import dates, digits, polarity
from keras_attention.cli.tasks import TASKS

# Data sets with a name of their own: how to load them, and what the model card says about them.
NAMED = {
    digits.NAME: (lambda data_dir: digits.load(), digits.ABOUT),
    dates.NAME: (lambda data_dir: dates.load(), dates.ABOUT),
    polarity.NAME: (data.sentence_polarity, polarity.ABOUT),
}

# Known licences of data sets, for the model card.
LICENCES = {
    "universal_dependencies/en_ewt": "CC BY-SA 4.0",
    "fashion_mnist": "MIT",
    "tiny_shakespeare": "the text is in the public domain",
    "mnist": "CC BY-SA 3.0",
}


def load(
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
    """What the task is of, or else texts, CoNLL-U or CoNLL, as the names of the files say."""
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
        return data.from_conllu(**files, column=label_column or "upos")
    if kinds == {"texts"}:
        columns = {"text_column": text_column or "text", "label_column": label_column or "label"}
        return data.from_text_files(**files, **columns)
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
        columns = text_column or "source", label_column or "target"
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


def describe(loaded, *, dataset=None, files=None, languages=None):
    """What the model card says about the data."""
    counts = _task_of(loaded).counts(loaded)
    if dataset in NAMED:
        return {**NAMED[dataset][1], "counts": counts}
    names = [pathlib.Path(path).name for path in (files or {}).values() if path is not None]
    return {
        "name": dataset or ", ".join(names) + (f" ({languages})" if languages else ""),
        "licence": LICENCES.get(dataset),
        "counts": counts,
        "notes": ("TensorFlow Datasets, official splits",) if dataset else (),
    }
