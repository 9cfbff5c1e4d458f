"""`TaskInterface`: the methods that every task class defines, with default implementations."""

import abc
import dataclasses
import typing

from keras_attention import data, training
from keras_attention.core.checks import check_not_a_path
from keras_attention.core.lazy import models, visualization
from keras_attention.data.splits import add_dev
from keras_attention.files.io import prefix_errors

DEV_FRACTION = 0.1  # share of the training examples that is held out without a dev split


class AttentionMaps(typing.NamedTuple):
    """The attention weights of a model for one input, as returned by the method `attention`.

    Attributes:
        weights: dict from the path of each attention layer to an array (1, N, T, S): batch, heads,
            queries and keys.
        queries, keys: lists of the tokens along the T and S axes of the layer in the figure, or
            None if these are patches of an image.
        figure: matplotlib figure that shows one of the layers.
    """

    weights: dict
    queries: list | None
    keys: list | None
    figure: object

    def __repr__(self):
        shapes = {path: tuple(weights.shape) for path, weights in self.weights.items()}
        return f"AttentionMaps({shapes}, queries={self.queries}, keys={self.keys})"


def draw_map(maps, queries, keys, caption, path, *, layer=None, most=None):
    """Plot the attention weights of one layer, and return `AttentionMaps` of all layers.

    Args:
        maps: dict from the path of each attention layer to its weights (1, N, T, S).
        queries, keys: lists of str, the tokens along the T and S axes of `maps[layer]`.
        caption: str, the text after the name of the layer in the title of the figure.
        path: path for saving the figure. None does not save it.
        layer: str, the key in `maps` of the layer to plot. None selects the last layer.
        most: int, the maximum number of queries and of keys to plot. None plots all.
    """
    layer = list(maps)[-1] if layer is None else layer
    rows, columns = queries[:most], keys[:most]
    weights, title = maps[layer][:, :, : len(rows), : len(columns)], f"{layer}: {caption}"
    figure = visualization.attention_map(weights, rows, columns, title=title, path=path)
    return AttentionMaps(dict(maps), queries, keys, figure)


class TaskInterface(abc.ABC):
    """The methods and class attributes that subclasses of `Task` define, with defaults.

    Attributes:
        builders: tuple of str, the names of the task on the command line and in `manifest.json`.
            Most are names of functions in `ka.models` that make a model for the task. If two tasks
            use the same function, one of them has a name of its own.
        example_kind: the class of one training example, such as `ka.data.Text`.
    """

    builders = ()
    example_kind = None
    holds = ""  # the content of a dataset for this task, for error messages
    unit = "texts"  # plural noun for the examples, where their number is reported
    example = ""  # a valid input of `predict`, for the model card
    predict_options = ()  # names of the keyword arguments of `predict`
    takes_context = False  # whether an input of `predict` is a question with its context
    draws = False  # whether `predict` samples at random
    converses = False  # whether the task has `reply`, which returns the next turn of a dialogue
    extends = False  # whether the task has `extend_vocabulary`, which adds subwords
    lower_is_better = False  # whether lower values of the first metric are better
    rows = 32  # batch size for scoring
    limit = None  # a `LengthLimit` if long examples must be skipped, else None
    finishing_seconds = 63.0  # typical time for export, verification and scoring
    deadline = None  # value of time.perf_counter() after which slow work raises `OutOfTime`

    @classmethod
    def collect(cls, examples):
        """Return a `ka.data.DataSet` whose training split is `examples`, an iterable."""
        check_not_a_path(examples)
        return cls.example_kind.collect(list(examples), dev_fraction=0)

    @classmethod
    @abc.abstractmethod
    def make_parts(cls, data, recipe, builder):
        """Make an untrained model and its preprocessor, which fit a dataset.

        Args:
            data: a `ka.data.DataSet`. Its training split determines vocabularies and labels.
            recipe: a `Recipe` with the hyperparameters.
            builder: str, one of `builders`.

        Returns:
            A tuple of the model, its preprocessor, and a dict with the remaining arguments of the
            constructor of this class.
        """

    @classmethod
    def read_settings(cls, fields):
        """Read the constructor arguments of a saved task from its `manifest.json`.

        This method also checks the entries that `load_preprocessor` reads later.

        Args:
            fields: `Fields`, the content of `manifest.json` with methods that check types.

        Returns:
            A dict of arguments of the constructor, without the model and the preprocessor.

        Raises:
            ValueError: an entry is missing or wrong.
        """
        return {}

    @classmethod
    @abc.abstractmethod
    def load_preprocessor(cls, folder, manifest):
        """Load the preprocessor from `folder`. `manifest` is the content of its `manifest.json`."""

    @property
    def settings(self):
        """dict of entries for `manifest.json`, which `read_settings` or an app reads later."""
        return {}

    @classmethod
    def count_examples(cls, data):
        """Return the number of examples in each non-empty split, as `{"train images": 60000}`.

        `data` is a `DataSet`.
        """
        parts = data.parts.items()
        return {f"{part} {cls.unit}": len(examples) for part, examples in parts if len(examples)}

    def select(self, examples, where, training=False):
        """Return the examples that are short enough for the model.

        Args:
            examples: list of examples, before preprocessing.
            where: str that error messages begin with, such as the name of the file.
            training: bool, whether `fit` trains on the examples. Some tasks only limit these.

        Raises:
            ValueError: all examples are too long.
        """
        return examples if self.limit is None else self.limit.select(examples, where, training)

    @property
    def batch_preprocessor(self):
        """Return the preprocessor that `ka.data.batches` applies to examples."""
        return self.preprocessor

    def make_training_batches(self, examples, recipe):
        """Return a `tf.data.Dataset` of (inputs, labels) batches, shuffled in each epoch.

        `examples` are raw examples. `recipe` is a `Recipe`, the hyperparameters, such as the batch
        size and the seed.
        """
        examples = self.select(examples, "The train part", training=True)
        options = {"shuffle": True, "seed": recipe.seed}
        return data.batches(examples, self.batch_preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        """Return a `tf.data.Dataset` of (inputs, labels) batches for scoring, not shuffled.

        Args:
            examples: raw examples. If they are empty, the result is None.
            where: str, how error messages refer to the examples.
        """
        examples = self.select(examples, where)
        with prefix_errors(where):
            if not len(examples):
                return None
            return data.batches(examples, self.batch_preprocessor, self.rows)

    def take_inputs(self, batches, count):
        """Return a list of model inputs from some batches, for checking an export.

        `batches` is a `tf.data.Dataset` from `make_batches`. At most `count` of its batches are
        read.
        """
        return [inputs for inputs, _ in batches.take(count).as_numpy_iterator()]

    @abc.abstractmethod
    def make_metrics(self):
        """Return a list of functions without arguments that make Keras metrics.

        The value of the first metric on the development split selects the best epoch.
        """

    def make_loss(self, recipe, train):
        """Return the loss for training, as `keras.Model.compile` accepts it.

        Args:
            recipe: `Recipe`, whose hyperparameters include, for example, `label_smoothing`.
            train: raw training examples. Some tasks compute class weights from them.
        """
        return training.MaskedSparseCategoricalCrossentropy(label_smoothing=recipe.label_smoothing)

    def tune(self, examples):
        """Choose settings other than weights, such as thresholds, on development examples.

        `examples` are raw examples. By default, this method does nothing.
        """
        return None

    @abc.abstractmethod
    def compute_scores(self, examples, where):
        """Run the model on raw examples, and return a dict from the name of a score to its value.

        Tasks with labels return a `ClassScores`, a dict with attributes `classes` and `confusion`.

        Args:
            examples: raw examples. If they are empty, the result is {}.
            where: str, how error messages refer to the examples.
        """

    def check_inputs(self, inputs):
        """Check a list of inputs of `predict` without running the model.

        Raises:
            ValueError: an input is invalid or too long. The message contains the number of this
                input (from 1).
        """
        return None

    @abc.abstractmethod
    def predict(self, inputs):
        """Run the model on a list of raw inputs, and return a list with a prediction for each."""

    @abc.abstractmethod
    def attention(self, example, path=None):
        """Plot the attention weights of one raw input, and return them as `AttentionMaps`.

        Args:
            example: an input of `predict`.
            path: path for saving the figure, whose suffix determines the format. None does not
                save it.
        """

    def explain(self, example, target=None, path=None):
        """Score how much each token of an input raised the prediction, and write a web page.

        `ka.visualization.relevance` computes the scores. The page shows the scores, and the
        attention through all layers, as `ka.visualization.attention_page` does.

        Args:
            example: an input of `predict`.
            target: the output to explain: its name, such as a label, or its number. Taggers and
                models that write text have an output for each word or written token, counted from
                0. None explains the predicted label, or all words.
            path: file to write the page to, such as `explained.html`. None writes no page.

        Returns:
            An `Explanation`.

        Raises:
            ValueError: the task or its model has no explanation, or the target does not exist.
        """
        from keras_attention.tasks.explaining import explain

        return explain(self, example, target, path)

    def record_example(self, example):
        """Run the model on `example`, one raw input, and return a `RecordedExample`.

        The result has the attention weights that `explain` needs. Raise a ValueError if the task
        has no explanation.
        """
        raise ValueError(
            f"{type(self).__name__} has no explanation. Use its method attention, which shows the "
            "attention weights."
        )

    @abc.abstractmethod
    def find_pictured(self, data):
        """Return an input of `attention` from the dataset `data` whose figure is easy to read."""

    def draw_examples(self, data, folder):
        """Plot attention on examples of `data`, save figures in `folder`, and return file names."""
        self.attention(self.find_pictured(data), folder / "attention.png")
        return ["attention.png"]

    def make_exportable(self, model):
        """Return what to export for `model`: a `keras.Model`, or a dict of models.

        The keys of a dict are the names of the signatures in the file. Subclasses also remove
        outputs that only training needs.
        """
        return model

    def make_examples(self):
        """Return input batches for comparing an export with the model. None uses random inputs."""
        return None

    def check_runner(self, path, run):
        """Raise a ValueError if the sizes of a model file do not match the preprocessor.

        For example, a vocabulary in the folder may have more entries than the model.

        Args:
            path: pathlib.Path of the model file.
            run: `PaddedRunner`, the opened file.
        """
        return None

    def check_data(self, data):
        """Raise a ValueError if the model cannot be trained or scored on the dataset `data`."""
        return None

    def replace_head(self, labels):
        """Return a copy of the model with a new last layer, with an output for each of `labels`."""
        return models.replace_head(self.model, len(labels))

    def with_labels(self, labels):
        """Return a copy of the preprocessor with other labels."""
        return dataclasses.replace(self.preprocessor, labels=tuple(labels))

    def find_example(self, data):
        """Return an input of `predict` to show in the model card, if possible from `data`."""
        return self.example

    def describe_data(self, data):
        """Return a tuple of str, notes on examples in `data` that are skipped or cut."""
        return () if self.limit is None else self.limit.describe_data(data)

    def describe_scored(self, examples):
        """Return a tuple of str, notes on raw examples that `compute_scores` skips."""
        return () if self.limit is None else self.limit.describe_scored(examples)

    def hold_out(self, train, dev, seed):
        """Return (train, dev). If `dev` is empty, a random tenth of `train` becomes `dev`.

        Both are raw examples. `seed` is an int that determines the choice.
        """
        return add_dev(train, dev, dev_fraction=DEV_FRACTION, seed=seed)

    def adapt(self, data):
        """Prepare the model for training on a dataset.

        If `data` has labels that the model lacks, the last layer is replaced by a new one for the
        labels of `data`.

        Returns:
            A tuple of str that describe the change. It is empty if nothing changed.
        """
        model_labels = data.labels and self.preprocessor.labels.names
        if data.labels is None or set(data.labels) <= set(model_labels):
            return ()
        self._model = self.replace_head(data.labels)
        self.preprocessor = self.with_labels(data.labels)
        self.source = {name: None for name in self.source}
        self.forget_runner()
        new = [name for name in data.labels if name not in model_labels]
        names = f"{', '.join(new[:5])}{', ...' if len(new) > 5 else ''}"
        return (
            f"the last layer is new, for {len(data.labels)} labels instead of "
            f"{len(model_labels)}: the model did not have {names}",
        )
