"""`TaskInterface`: what a class of tasks says of itself, for `Task` to load, train and save it."""

import abc
import dataclasses
import typing

from keras_attention import data, training
from keras_attention.core.lazy import models
from keras_attention.data.splits import add_dev
from keras_attention.files.io import prefix_errors

DEV_FRACTION = 0.1  # of the examples, where no others are given to choose the epoch on


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
    example = ""  # an input that `predict` takes
    predict_options = ()  # keywords of `predict`
    takes_context = False  # whether an input of `predict` is a question with its context
    draws = False  # whether `predict` draws at random
    converses = False  # whether `reply` gives the next turn of a dialogue
    extends = False  # whether `extend_vocabulary` adds subwords
    lower_is_better = False  # of the first of the metrics
    rows = 32  # examples that are scored at a time
    limit = None  # a `LengthLimit`, where examples may be too long
    finishing_seconds = 63.0  # that export, verification and scores of a usual model take
    deadline = None  # by `time.perf_counter`: what takes long then ends with `OutOfTime`

    @classmethod
    def collect(cls, examples):
        """Return a data set whose training part is `examples`."""
        return cls.example_kind.collect(list(examples), dev_fraction=0)

    @classmethod
    @abc.abstractmethod
    def make_parts(cls, data, recipe, builder):
        """Make a model for a data set, by a `Recipe`.

        Returns:
            the model, its preprocessor, and a dict of other keywords of the constructor.
        """

    @classmethod
    def read_settings(cls, fields):
        """Return keywords of the constructor, from a manifest (`Fields`).

        A ValueError where something is missing that this, or `load_preprocessor`, reads in it.
        """
        return {}

    @classmethod
    @abc.abstractmethod
    def load_preprocessor(cls, folder, manifest):
        """Return the preprocessor whose files are in `folder`."""

    @property
    def settings(self):
        """Return the manifest's entries that `read_settings` reads, and what an app needs."""
        return {}

    @classmethod
    def count_examples(cls, data):
        """Return {what there is in a data set: how many}, without parts that are empty."""
        parts = data.parts.items()
        return {f"{part} {cls.unit}": len(examples) for part, examples in parts if len(examples)}

    def select(self, examples, where, training=False):
        """Return the examples that are not too long for the model, of a list that `where` names."""
        return examples if self.limit is None else self.limit.select(examples, where, training)

    @property
    def batch_preprocessor(self):
        """Return what makes batches to train on and to score: the preprocessor."""
        return self.preprocessor

    def make_training_batches(self, examples, recipe):
        """Return a shuffled `tf.data.Dataset` of (inputs, labels) batches."""
        examples = self.select(examples, "The train part", training=True)
        options = {"shuffle": True, "seed": recipe.seed}
        return data.batches(examples, self.batch_preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        """Return (inputs, labels) batches in order, or None without examples.

        Args:
            where: str, what errors call the examples.
        """
        examples = self.select(examples, where)
        with prefix_errors(where):
            if not len(examples):
                return None
            return data.batches(examples, self.batch_preprocessor, self.rows)

    @abc.abstractmethod
    def make_metrics(self):
        """Functions that make Keras metrics of labels and logits; the first chooses the epoch."""

    def make_loss(self, recipe, train):
        """Return the Keras loss of labels and logits; of all outputs where the model has several.

        Args:
            recipe: `Recipe`.
            train: raw examples to train on, which may say how much each label weighs.
        """
        return training.MaskedSparseCategoricalCrossentropy(label_smoothing=recipe.label_smoothing)

    def tune(self, examples):
        """Chooses on raw examples what is no weight, such as a threshold; here there is none."""
        return None

    @abc.abstractmethod
    def compute_scores(self, examples, where):
        """Return {name: score} of the runner on raw examples; {} without any.

        Tasks with labels give a `ClassScores`, with `classes` and `confusion`.
        """

    @abc.abstractmethod
    def predict(self, inputs):
        """Return what the model says of each of `inputs`."""

    @abc.abstractmethod
    def attention(self, example, path=None):
        """`AttentionMaps` of one raw input.

        Args:
            path: file for the picture; the suffix gives the format.
        """

    @abc.abstractmethod
    def find_pictured(self, data):
        """Return an input of a data set whose attention is easy to read as a picture."""

    def draw_examples(self, data, folder):
        """Draws pictures of the model's attention into `folder`; gives their names."""
        self.attention(self.find_pictured(data), folder / "attention.png")
        return ["attention.png"]

    def make_exportable(self, model):
        """Return the model that exported files hold, of the Keras model: as it is."""
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
        """Return the model with a new last layer for so many labels."""
        return models.replace_head(self.model, num_labels)

    def with_labels(self, labels):
        """Return the preprocessor with other labels."""
        return dataclasses.replace(self.preprocessor, labels=tuple(labels))

    def find_example(self, data):
        """Return an input that `predict` takes, as those of a data set are."""
        return self.example

    def describe_data(self, data):
        """Sentences about what of `data` the model is not trained on, for users."""
        return () if self.limit is None else self.limit.describe_data(data)

    def describe_scored(self, examples):
        """Sentences about raw examples that scores leave out, for the user."""
        return () if self.limit is None else self.limit.describe_scored(examples)

    def hold_out(self, train, dev, seed):
        """Return (train, dev): without dev, a tenth of train becomes it."""
        return add_dev(train, dev, dev_fraction=DEV_FRACTION, seed=seed)

    def adapt(self, data):
        """Gives the model a new last layer where `data` has labels that it does not know.

        Returns:
            tuple of str, sentences that say what is new.
        """
        known = data.labels and self.preprocessor.labels.names
        if data.labels is None or set(data.labels) <= set(known):
            return ()
        self._model = self.replace_head(len(data.labels))
        self.preprocessor = self.with_labels(data.labels)
        self.source = {name: None for name in self.source}
        self.forget_runner()
        new = [name for name in data.labels if name not in known]
        return (
            f"the last layer is new, for {len(data.labels)} labels in place of {len(known)}: "
            f"the model does not know {', '.join(new[:5])}{', ...' if len(new) > 5 else ''}",
        )
