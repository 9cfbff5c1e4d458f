"""`Source`: the data of a command, from TFDS, from files, or a dataset of this package."""

import dataclasses
import pathlib
import warnings

import numpy as np

from keras_attention import data
from keras_attention.cli.printing import say
from keras_attention.cli.readers import READERS, SPOKEN_DIGITS, SPOKEN_NUMBERS
from keras_attention.data.made_up.dates import LOCALES
from keras_attention.data.problems import SkippedWarning
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
        "the epoch, and the rest for training. The same people wrote digits of all three parts",
    ),
}


def load_digits():
    """Load 1,797 images (8, 8, 1) of handwritten digits, and return a `ka.data.DataSet`.

    Every split has the same share of each digit. `seed` is for the random split.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "The digits are in scikit-learn, which is not installed. Run "
            "pip install 'keras-attention-zoo[data]'"
        ) from error
    digits = datasets.load_digits()
    images = (digits.images / 16.0).astype("float32")[..., None]
    parts = {
        name: (images[k], digits.target[k])
        for name, k in split_by_class(digits.target, seed=0).items()
    }
    return data.ImageSplit.collect(**parts, labels=[str(digit) for digit in range(10)])


def split_by_class(labels, seed):
    """Split examples into train, dev and test, with the same share of each class in every split.

    `labels` is an array with the class of each example, and `seed` an int. The result is a dict
    from the name of each split to an array with the indices of its examples.
    """
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
    f"{len(LOCALES)} locales, made with Babel, and in ISO 8601",
    "licence": "Unicode License v3 (CLDR)",
    "notes": (
        "made up with a fixed seed: every day is in only one split, languages and forms are in all "
        "splits. Forms that could be read as another date in one of the locales are left out",
    ),
}


def load_dates():
    """Return a `ka.data.DataSet` of pairs: a date as people write it, and in ISO 8601."""
    parts = {
        part: [date[:2] for date in data.dates(part, size, seed=0)] for part, size in SIZES.items()
    }
    return data.Pair.collect(**parts)


POLARITY = "sentence_polarity"
ABOUT_POLARITY = {
    "name": "sentence polarity, version 1.0 (Pang and Lee, 2005), as NLTK publishes it",
    "licence": "CC BY 4.0",
    "notes": (
        "split by class with a fixed seed: a tenth for testing, a tenth for choosing the epoch, "
        "and the rest for training",
    ),
}


FACTS = "facts"
FACTS_SIZES = {"train": 6_000, "dev": 500, "test": 1_000}
ABOUT_FACTS = {
    "name": "questions about made-up people, each with a sentence or two that may answer it",
    "licence": "none needed, because it is made up",
    "notes": ("made up with a fixed seed from a few patterns; no surname is in two splits",),
}


def load_facts():
    """Return a `ka.data.DataSet` of questions about fictional people, with their contexts."""
    parts = {part: data.facts(part, size, 0) for part, size in FACTS_SIZES.items()}
    return data.Question.collect(**parts)


# Datasets that are not in TFDS: name -> (function that loads it, its description for model cards).
NAMED = {
    DIGITS: (lambda data_dir: load_digits(), ABOUT_DIGITS),
    DATES: (lambda data_dir: load_dates(), ABOUT_DATES),
    POLARITY: (data.sentence_polarity, ABOUT_POLARITY),
    FACTS: (lambda data_dir: load_facts(), ABOUT_FACTS),
}

# Licenses of datasets, for model cards.
LICENSES = {
    "universal_dependencies/en_ewt": "CC BY-SA 4.0",
    "fashion_mnist": "MIT",
    "goemotions": "Apache-2.0",
    "tiny_shakespeare": "the text is in the public domain",
    "bccd": "MIT",
    "mnist": "CC BY-SA 3.0",
    "spoken_digit": "CC BY-SA 4.0",
    "spoken_numbers": "CC BY-SA 4.0",
}

OWN_SPLITS = (SPOKEN_DIGITS, SPOKEN_NUMBERS)  # TFDS has only one split of them
MANIFEST_FIELDS = ("dataset", "label_column", "text_column", "languages", "encoding", "turns")


@dataclasses.dataclass(frozen=True)
class Source:
    """The origin of a `DataSet` (a named dataset or files), and the options for reading it.

    Args:
        dataset: str, the name of a dataset in TFDS or in `NAMED` (datasets of this package). None
            if there are files.
        files: dict from `"train"`, `"dev"` and `"test"` to a path or None.
        label_column, text_column: str, the name or number of a column. None uses the default of the
            task.
        languages: str, such as `de-en`, for aligned files that end in `.de` and `.en`. None for
            other files.
        encoding: str, the encoding of text files. None for UTF-8.
        on_error: `"skip"` skips broken examples. None raises an error that lists them.
        turns: int, the number of previous turns before each reply in a dialogue. None for 3.
        image_size: int or (height, width), the size of images. None for the default, which is 48
            for images in folders.
        color_mode: `"rgb"`, `"grayscale"`, or None for the color mode of the image files.
        labels: tuple of str, the class names. None uses the names in the data.
        resizing: `ka.data.Resizing` for images in folders. None uses the default.
        sampling_rate: int, the new sampling rate if recordings are resampled. None keeps the
            sampling rate of the files.
        data_dir: path of the folder for datasets. None uses the default.
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
        files = {part: str(path) for part, path in self.files.items() if path is not None}
        object.__setattr__(self, "files", files)

    @classmethod
    def from_manifest(cls, metadata, **changes):
        """Return the `Source` of the data that a model was trained on.

        Args:
            metadata: dict, the content of the `manifest.json` that training saves with a model.
            **changes: new values of fields. A value of None does not change the field.
        """
        changes = {name: value for name, value in changes.items() if value is not None}
        if changes.get("files"):
            changes.setdefault("dataset", None)
        fields = {name: metadata.get(name) for name in MANIFEST_FIELDS}
        if changes.get("dataset"):
            fields["languages"] = None
        if "image_size" in metadata:
            fields |= _describe_images(metadata)
            if "labels" in metadata:
                fields["labels"] = tuple(metadata["labels"])
        if "sampling_rate" in metadata:
            fields["sampling_rate"] = metadata["sampling_rate"]
        return cls(**{**fields, **changes})

    def like(self, metadata):
        """Return a copy of the source with the image size, sampling rate and turns of a model.

        `metadata` is a dict, the manifest of the model, which is trained further on this source.
        """
        names = ("turns", "sampling_rate")
        settled = {name: metadata[name] for name in names if metadata.get(name) is not None}
        if "image_size" in metadata:
            settled |= _describe_images(metadata)
        for name, value in {"image_size": self.image_size, "turns": self.turns}.items():
            if name in settled and value is not None:
                option = f"--{name.replace('_', '-')} {value}"
                raise ValueError(f"{option} is fixed by the model: leave it out.")
        return dataclasses.replace(self, **settled)

    @property
    def entries(self):
        """Return a dict with the manifest entries that describe the source."""
        always, fields = ("dataset", "label_column"), vars(self)
        return {
            name: fields[name]
            for name in MANIFEST_FIELDS
            if fields[name] is not None or name in always
        }

    def check_options(self, builder):
        """Raise a ValueError if a command line option does not apply to the data.

        `builder` is the name of the function in `ka.models` that builds the model.
        """
        content, allowed = self._list_options(builder)
        for name in (*MANIFEST_FIELDS[1:], "on_error", "image_size"):
            value = vars(self)[name]
            if value is not None and name not in allowed:
                option = f"--{name.replace('_', '-')} {value}"
                raise ValueError(f"{option} does not apply to {content}: leave it out.")

    def _list_options(self, builder):
        """Return a description of the data, and the names of the options that apply to it."""
        if self.dataset is not None:
            columns = () if self.dataset in NAMED else ("label_column", "text_column")
            return f"--dataset {self.dataset}", columns
        return READERS[builder].describe_files(self)

    def load(self, builder):
        """Load the data for the task called `builder`, and return a `ka.data.DataSet`."""
        if (self.dataset is None) == (not self.files):
            raise ValueError(
                "Name a dataset with --dataset, or give files with --train, --dev and --test"
                + (", but not both." if self.files else ".")
            )
        if self.languages is not None and "languages" not in self._list_options(builder)[1]:
            raise ValueError(
                f"--languages {self.languages} is for pairs of text, which {builder} does not "
                "take: leave it out."
            )
        if self.files:
            loaded = READERS[builder].read_files(self)
        elif self.dataset in NAMED:
            loaded = NAMED[self.dataset][0](self.data_dir)
        else:
            loaded = READERS[builder].read_tfds(self)
        self.check_kind(loaded.kind, builder)
        return loaded

    def load_and_report(self, builder):
        """Load the data, and print which examples are skipped.

        `builder` is the name of the function in `ka.models` that builds the model.

        Returns:
            A `ka.data.DataSet`, and a list of sentences for the model card with the numbers of
            skipped examples.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SkippedWarning)
            loaded = self.load(builder)
        skipped = []
        for warning in caught:
            if issubclass(warning.category, SkippedWarning):
                say(str(warning.message))
                skipped.append(str(warning.message).partition("\n")[0])
            else:
                line = warning.filename, warning.lineno
                warnings.warn_explicit(warning.message, warning.category, *line)
        return loaded, skipped

    def check_kind(self, kind, builder):
        """Raise a ValueError if the task called `builder` does not take examples of this class.

        `kind` is a class of examples, such as `ka.data.Text`.
        """
        if kind is not get_task_class(builder).example_kind:
            other = find_task_by_examples(kind)
            holds = get_task_class(other).holds if other else kind.__name__
            raise ValueError(
                f"{self.dataset or 'The files'}: {holds}, which {builder} does not take"
                + (f". Train a {other} on this data." if other else ".")
            )

    def choose_column(self, option, default):
        """Return a column: its name, or its number in a file without a header row.

        Args:
            option: `"text_column"` or `"label_column"`.
            default: str, the column if the option is not set.
        """
        value = vars(self)[option]
        value = default if value is None else value
        return int(value) if value.isdecimal() else value

    @property
    def encodings(self):
        """Return the keyword argument `encoding` of functions that read text files, as a dict."""
        return {} if self.encoding is None else {"encoding": self.encoding}

    @property
    def skipping(self):
        """Return the keyword argument `on_error` of functions that skip examples, as a dict."""
        return {} if self.on_error is None else {"on_error": self.on_error}

    @property
    def reading(self):
        """Return both keyword arguments, `encoding` and `on_error`, as a dict."""
        return self.encodings | self.skipping

    def describe(self, builder, loaded):
        """Return a dict that describes the data in the model card.

        `loaded` is the `ka.data.DataSet` that `load` returned for the task called `builder`.
        """
        counts = get_task_class(builder).count_examples(loaded)
        if self.dataset in NAMED:
            return {**NAMED[self.dataset][1], "counts": counts}
        names = [pathlib.Path(path).name for path in self.files.values()]
        languages = f" ({self.languages})" if self.languages else ""
        splits = "" if self.dataset in OWN_SPLITS else ", official splits"
        notes = (f"TensorFlow Datasets{splits}",) if self.dataset else ()
        return {
            "name": self.dataset or ", ".join(names) + languages,
            "licence": LICENSES.get(self.dataset),
            "counts": counts,
            "notes": (*notes, *loaded.notes),
        }


def _describe_images(metadata):
    """Return the fields of a `Source` that read images as a model's manifest describes."""
    mode = "grayscale" if metadata["channels"] == 1 else "rgb"
    fields = {"image_size": tuple(metadata["image_size"]), "color_mode": mode}
    if "resizing" in metadata:
        resizing = data.Resizing.read(Fields(MANIFEST, metadata["resizing"], "resizing"))
        fields["resizing"] = None if resizing == data.Resizing() else resizing
    return fields
