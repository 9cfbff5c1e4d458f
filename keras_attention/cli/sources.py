"""Data sets for tasks: from TFDS by name, from files, or by a name of this module."""

import dataclasses
import pathlib

import numpy as np

from keras_attention import data
from keras_attention.cli.readers import READERS, SPOKEN_DIGITS, SPOKEN_NUMBERS
from keras_attention.data.made_up.dates import LOCALES
from keras_attention.files.fields import Fields
from keras_attention.files.manifest import MANIFEST
from keras_attention.tasks.registry import find_task_by_examples, get_task_class

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
    """Load the 1,797 images (8, 8, 1), every part with its share of each digit.

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
    return data.ImageSplit.collect(**parts, labels=[str(digit) for digit in range(10)])


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
    """Return the dates as pairs of texts: as people write them, and in ISO 8601."""
    parts = {
        part: [date[:2] for date in data.dates(part, size, seed=seed)]
        for part, size in SIZES.items()
    }
    return data.Pair.collect(**parts)


POLARITY = "sentence_polarity"
ABOUT_POLARITY = {
    "name": "sentence polarity, version 1.0 (Pang and Lee, 2005), as NLTK publishes it",
    "licence": "CC BY 4.0",
    "notes": (
        "split by class with a fixed seed: a tenth for testing, a tenth for choosing the epoch, "
        "the others for training",
    ),
}


FACTS = "facts"
FACTS_SIZES = {"train": 6_000, "dev": 500, "test": 1_000}
ABOUT_FACTS = {
    "name": "questions about made-up people, each with a sentence or two that may answer it",
    "licence": "none is needed: all is made up",
    "notes": ("made up with a fixed seed from a few patterns; no surname is in two parts",),
}


def load_facts(seed=0):
    """Return the made-up questions as a `ka.data.DataSet`."""
    parts = {part: data.facts(part, size, seed) for part, size in FACTS_SIZES.items()}
    return data.Question.collect(**parts)


# Data sets with a name of their own: how to load them, and their entry in the model card.
NAMED = {
    DIGITS: (lambda data_dir: load_digits(), ABOUT_DIGITS),
    DATES: (lambda data_dir: load_dates(), ABOUT_DATES),
    POLARITY: (data.sentence_polarity, ABOUT_POLARITY),
    FACTS: (lambda data_dir: load_facts(), ABOUT_FACTS),
}

# Known licences of data sets, for the model card.
LICENCES = {
    "universal_dependencies/en_ewt": "CC BY-SA 4.0",
    "fashion_mnist": "MIT",
    "goemotions": "Apache-2.0",
    "tiny_shakespeare": "the text is in the public domain",
    "bccd": "MIT",
    "mnist": "CC BY-SA 3.0",
    "spoken_digit": "CC BY-SA 4.0",
    "spoken_numbers": "CC BY-SA 4.0",
}


OWN_SPLITS = (SPOKEN_DIGITS, SPOKEN_NUMBERS)  # of one part in TFDS


REMEMBERED = ("dataset", "label_column", "text_column", "languages", "encoding", "turns")


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a data set comes from: a name, or files with what says how to read them.

    Args:
        dataset: str, a name in TFDS, or one in `NAMED`; or None.
        files: dict, `"train"`, `"dev"`, `"test"` -> path or None, instead of a data set.
        label_column, text_column: str or None.
        languages: str, `de-en` for aligned files, which end in `.de` and `.en`; or None.
        encoding: str, of files of text; None for UTF-8.
        on_error: `"skip"` leaves broken examples of files out; None names them in an error.
        turns: int, of a dialogue that a reply is to; None for 3.
        image_size: int or (height, width), of pictures in folders; None for 48.
        color_mode: `"rgb"`, `"grayscale"`, or None for what the pictures are.
        labels: names of the classes of pictures in folders; None for those of the folders.
        resizing: `ka.data.Resizing` of pictures in folders, or None.
        sampling_rate: int, samples a second that recordings get; None for that of the files.
        data_dir: where data sets are kept, or None.
    """

    dataset: str | None = None
    files: dict = dataclasses.field(default_factory=dict)
    label_column: str | None = None
    text_column: str | None = None
    languages: str | None = None
    encoding: str | None = None
    on_error: str | None = None
    turns: int | None = None
    image_size: int | tuple | None = None
    color_mode: str | None = None
    labels: tuple | None = None
    resizing: data.Resizing | None = None
    sampling_rate: int | None = None
    data_dir: pathlib.Path | None = None

    def __post_init__(self):
        given = {part: str(path) for part, path in self.files.items() if path is not None}
        object.__setattr__(self, "files", given)

    @classmethod
    def remembered(cls, metadata, **given):
        """As a manifest remembers it, with what is `given` and not None in its place."""
        given = {name: value for name, value in given.items() if value is not None}
        if given.get("files"):
            given.setdefault("dataset", None)
        known = {name: metadata.get(name) for name in REMEMBERED}
        if given.get("dataset"):
            known["languages"] = None
        if "image_size" in metadata:
            known |= _describe_pictures(metadata) | {"labels": tuple(metadata["labels"])}
        if "sampling_rate" in metadata:
            known["sampling_rate"] = metadata["sampling_rate"]
        return cls(**{**known, **given})

    def like(self, metadata):
        """Return the same, read as a model of this manifest takes it.

        Pictures get its size, recordings its rate, and dialogues as many turns.
        """
        names = ("turns", "sampling_rate")
        settled = {name: metadata[name] for name in names if metadata.get(name) is not None}
        if "image_size" in metadata:
            settled |= _describe_pictures(metadata)
        for name in ("image_size", "turns"):
            if name in settled and (given := getattr(self, name)) is not None:
                option = f"--{name.replace('_', '-')} {given}"
                raise ValueError(f"{option} is settled by the model: leave it out.")
        return dataclasses.replace(self, **settled)

    @property
    def entries(self):
        """Return what a manifest remembers of it, a dict."""
        always = ("dataset", "label_column")
        found = {name: getattr(self, name) for name in REMEMBERED}
        return {name: value for name, value in found.items() if value is not None or name in always}

    def check_options(self, builder):
        """Refuses options of the command line that do not apply to the data."""
        names = ("label_column", "text_column", "languages", "encoding", "on_error", "turns")
        names += ("image_size",)
        what, allowed = self._list_options(builder)
        for name in names:
            if getattr(self, name) is not None and name not in allowed:
                option = f"--{name.replace('_', '-')} {getattr(self, name)}"
                raise ValueError(f"{option} is not for {what}: leave it out.")

    def _list_options(self, builder):
        """Return (what the data are, the names of the options that apply to them)."""
        if self.dataset is not None:
            columns = () if self.dataset in NAMED else ("label_column", "text_column")
            return f"--dataset {self.dataset}", columns
        return READERS[builder].describe(self)

    def load(self, builder):
        """Return the data for the task of `builder`, a `ka.data.DataSet`."""
        if (self.dataset is None) == (not self.files):
            raise ValueError(
                "Name a data set with --dataset, or give files with --train, --dev and --test"
                + (": both were given." if self.files else ".")
            )
        if self.languages is not None and "languages" not in self._list_options(builder)[1]:
            raise ValueError(
                f"--languages {self.languages} is for pairs of texts, which {builder} does not "
                "take."
            )
        if self.files:
            loaded = READERS[builder].read_files(self)
        elif self.dataset in NAMED:
            loaded = NAMED[self.dataset][0](self.data_dir)
        else:
            loaded = READERS[builder].read_tfds(self)
        self.check_kind(loaded.kind, builder)
        return loaded

    def check_kind(self, kind, builder):
        """Refuses examples of the class `kind` that the task of `builder` does not take."""
        if kind is not get_task_class(builder).example_kind:
            other = find_task_by_examples(kind)
            holds = get_task_class(other).holds if other else kind.__name__
            raise ValueError(
                f"{self.dataset or 'These files'}: {holds}, which {builder} does not take"
                + (f"; {other} does." if other else ".")
            )

    def choose_column(self, option, default):
        """Return the name of a column, or its number in a file whose first row names none.

        Args:
            option: `"text_column"` or `"label_column"`.
        """
        value = getattr(self, option)
        value = default if value is None else value
        return int(value) if value.isdecimal() else value

    @property
    def encodings(self):
        """Return keywords of readers of text."""
        return {} if self.encoding is None else {"encoding": self.encoding}

    @property
    def skipping(self):
        """Return keywords of readers of examples that may be broken."""
        return {} if self.on_error is None else {"on_error": self.on_error}

    @property
    def reading(self):
        """Return keywords of readers of examples of text."""
        return self.encodings | self.skipping

    def describe(self, builder, loaded):
        """Return the entry of the data in the model card, a dict."""
        counts = get_task_class(builder).count_examples(loaded)
        if self.dataset in NAMED:
            return {**NAMED[self.dataset][1], "counts": counts}
        names = [pathlib.Path(path).name for path in self.files.values()]
        languages = f" ({self.languages})" if self.languages else ""
        splits = "" if self.dataset in OWN_SPLITS else ", official splits"
        notes = (f"TensorFlow Datasets{splits}",) if self.dataset else ()
        return {
            "name": self.dataset or ", ".join(names) + languages,
            "licence": LICENCES.get(self.dataset),
            "counts": counts,
            "notes": (*notes, *loaded.notes),
        }


def _describe_pictures(metadata):
    """Return how pictures are read for a manifest's model: a dict."""
    mode = "grayscale" if metadata["channels"] == 1 else "rgb"
    found = {"image_size": tuple(metadata["image_size"]), "color_mode": mode}
    if "resizing" in metadata:
        resizing = data.Resizing.read(Fields(MANIFEST, metadata["resizing"], "resizing"))
        found["resizing"] = None if resizing == data.Resizing() else resizing
    return found
