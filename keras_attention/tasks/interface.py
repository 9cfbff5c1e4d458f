"""`TaskInterface`: what a class of tasks says of itself, for `Task` to load, train and save it."""

import abc
import dataclasses
import typing

from keras_attention import training
from keras_attention.core.lazy import models


class AttentionMaps(typing.NamedTuple):
    """What a model looked at.

    `weights` maps the path of each attention layer to an array (1, N, T, S), `queries` and `keys`
    are the tokens of the T and S axes of the layer that the picture shows (None for an image), and
    `figure` is the picture, a matplotlib figure.
    """

    weights: dict
    queries: list | None
    keys: list | None
    figure: object


class TaskInterface(abc.ABC):
    """What the subclasses of `Task` say: data, batches, metrics, answers, and their manifest.

    Attributes:
        builders: tuple of str, names of the task: functions in `ka.models` that make its models, or
            a name of its own where another task's builder makes them.
        example_kind: the class of its examples, such as `ka.data.Text`.
    """

    builders = ()
    example_kind = None
    holds = ""  # what its data are, for errors
    unit = "texts"  # what examples are, in the plural
    example = ""  # an input that `predict` takes, for the card and the page
    predict_options = ()  # keywords of `predict`
    takes_context = False  # whether an input of `predict` is a question with its context
    draws = False  # whether `predict` draws at random
    converses = False  # whether `reply` gives the next turn of a dialogue
    lower_is_better = False  # of the first of the metrics
    finishing_seconds = 63.0  # that export, verification and scores of a usual model take
    deadline = None  # by `time.perf_counter`: what takes long then ends with `OutOfTime`

    @classmethod
    def collect(cls, examples):
        """A data set whose training part is `examples`."""
        return cls.example_kind.collect(list(examples), dev_fraction=0)

    @classmethod
    @abc.abstractmethod
    def make_parts(cls, data, recipe, builder):
        """Make a model for a data set, by a `Recipe`.

        Returns:
            the model, its preprocessor, and a dict of other keywords of the constructor.
        """

    @classmethod
    @abc.abstractmethod
    def check_manifest(cls, fields):
        """Refuses a manifest (`Fields`) that lacks what `read_settings` reads in it."""

    @classmethod
    @abc.abstractmethod
    def load_preprocessor(cls, folder, manifest):
        """The preprocessor whose files are in `folder`."""

    @classmethod
    @abc.abstractmethod
    def read_settings(cls, manifest):
        """Keywords of the constructor, from a manifest that `check_manifest` let pass."""

    @property
    @abc.abstractmethod
    def settings(self):
        """dict, the manifest's entries that `read_settings` reads, and what an app needs."""

    @classmethod
    def count_examples(cls, data):
        """dict, what there is in a data set -> how many, without parts that are empty."""
        return {
            f"{part} {cls.unit}": len(examples)
            for part, examples in data.parts.items()
            if len(examples)
        }

    @abc.abstractmethod
    def make_training_batches(self, examples, recipe):
        """A shuffled `tf.data.Dataset` of (inputs, labels) batches."""

    @abc.abstractmethod
    def make_batches(self, examples, where):
        """(inputs, labels) batches in order, or None without examples.

        Args:
            where: str, what errors call the examples.
        """

    @abc.abstractmethod
    def make_metrics(self):
        """Functions that make Keras metrics of labels and logits; the first chooses the epoch."""

    def make_loss(self, recipe):
        """The Keras loss of labels and logits; of all outputs where the model has several."""
        return training.MaskedSparseCategoricalCrossentropy(label_smoothing=recipe.label_smoothing)

    def tune(self, examples):
        """Chooses on raw examples what is no weight, such as a threshold; here there is none."""
        return None

    @abc.abstractmethod
    def compute_scores(self, examples, where):
        """{name: score} of the runner on raw examples; {} without any.

        Tasks with labels give a `ClassScores`, with `classes` and `confusion`.
        """

    @abc.abstractmethod
    def predict(self, inputs):
        """What the model says of each of `inputs`."""

    @abc.abstractmethod
    def attention(self, example, path=None):
        """`AttentionMaps` of one raw input.

        Args:
            path: file for the picture; the suffix gives the format.
        """

    @abc.abstractmethod
    def draw_examples(self, data, folder):
        """Draws pictures of the model's attention into `folder`; gives their names."""

    def make_exportable(self, model):
        """The model that exported files hold, of the Keras model: as it is."""
        return model

    def make_examples(self):
        """Batches of inputs to compare files on where none are given; None: any will do."""
        return None

    def check_runner(self, path, run):
        """Refuses a file whose sizes are not those of the preprocessor beside it."""
        return None

    def check_data(self, data):
        """Refuses a data set that the model cannot read, before it is trained on or scored."""
        return None

    def replace_head(self, num_labels):
        """The model with a new last layer for so many labels."""
        return models.replace_head(self.model, num_labels)

    def with_labels(self, labels):
        """The preprocessor with other labels."""
        return dataclasses.replace(self.preprocessor, labels=tuple(labels))

    def find_example(self, data):
        """An input that `predict` takes, as those of a data set are."""
        return self.example

    def describe_data(self, data):
        """Sentences about what of `data` the model is not trained on, printed and in the card."""
        return ()

    def describe_scored(self, examples):
        """Sentences about raw examples that scores leave out, printed beside the scores."""
        return ()
