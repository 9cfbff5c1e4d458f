"""`Task`: a model, its preprocessor and its files as one object."""

import functools
import logging
import pathlib

from keras_attention.core.lazy import keras
from keras_attention.data.dataset import DataSet
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.export import card
from keras_attention.export.checks import runner as files
from keras_attention.files import manifest as manifests
from keras_attention.files.io import write_json
from keras_attention.files.manifest import check_unchanged
from keras_attention.tasks import recipes
from keras_attention.tasks.folders import CARD, MODEL, SCORES, RunFolder
from keras_attention.tasks.interface import TaskInterface
from keras_attention.tasks.opening import open_model_file, open_preset
from keras_attention.tasks.runners import load_runner, wrap_model

LOG = logging.getLogger(__name__)
CALIBRATING = 8  # batches of real inputs to measure activations on


class Task(TaskInterface):
    """A model that does something for people: raw examples in, plain Python out.

    Its subclasses are the classes of `ka.tasks`, one for each kind of task. `from_preset` opens a
    trained one, `from_data` makes a new one, and the constructor takes a functional model and a
    preprocessor that you made.

    Args:
        model: functional `keras.Model`, as the builder of the task gives it or your own of the same
            inputs and outputs.
        preprocessor: of `ka.data`, raw examples to arrays and back.
        builder: str, the function in `ka.models` whose kind of model it is; None for the first in
            `builders`.

    Attributes:
        model: the Keras model.
        preprocessor: as given.
        pretrained: bool, whether the model began as a checkpoint of Hugging Face.
        checkpoint: the folder of that checkpoint, where it was opened in this session; else None.
        builders: tuple of str, names of the task: functions in `ka.models` that make its models, or
            a name of its own where another task's builder makes them.
        example_kind: the class of its examples, such as `ka.data.Text`.
    """

    def __init__(self, model, preprocessor, *, builder=None):
        self._model, self.preprocessor = model, preprocessor
        self.builder = self.check_builder(builder, "")
        self.source = {"dataset": None, "label_column": None}
        self.recipe = recipes.choose_recipe(self.builder)
        self.path, self.manifest, self.scores = None, {}, {}
        self.pretrained, self.checkpoint = False, None

    def __repr__(self):
        about = str(self.path)
        if self.path is None and self._model is not None:
            about = f"{self._model.name}, {self._model.count_params():,} parameters"
        labels = self.settings.get("labels")
        kinds = "" if labels is None else f", {len(labels)} labels"
        return f"{type(self).__name__}({self.builder}: {about}{kinds})"

    @classmethod
    def check_builder(cls, builder, function):
        """Return a name in `builders`, the first where it is None; another one is refused."""
        builder = cls.builders[0] if builder is None else builder
        if builder not in cls.builders:
            raise ValueError(
                f"{cls.__name__}{function}(builder={builder!r}): expected one of "
                f"{', '.join(cls.builders)}."
            )
        return builder

    # How a task begins.

    @classmethod
    def from_preset(cls, preset, file=None, **options):
        """Like `ka.tasks.from_preset`, where the preset must be of this class.

        A checkpoint of Hugging Face becomes one: where it has another head or none, the new one is
        to be trained with `fit`.

        Args:
            preset, file: as there.
            **options: only of checkpoints. `max_length`, the tokens of a text that a `MaskedLM`
                reads, that a `CausalLM` is trained on at once, or that a `Seq2SeqLM` writes at
                most; and of a `Seq2SeqLM` its `beam`, `length_penalty` and `score`, and the
                `prefix` of every source, such as T5's `"translate English to German: "`. Of a
                `SpeechToText` `language`, `task` (`"transcribe"` or `"translate"`), `max_length`,
                `beam` and `length_penalty`. Of a `TextClassifier` and a `MultiLabelClassifier` the
                `pooling` before a new head, as in `ka.pretrained.load`: `"first"` is what Hugging
                Face's classifiers have.
        """
        return open_preset(cls, preset, file, options)

    @classmethod
    def open_file(cls, path, manifest=None):
        """Return the task of a model file of any format, with the vocabularies in its folder.

        Args:
            path: the `.keras` file, SavedModel or `.tflite`.
            manifest: dict, what the manifest in the folder says; None reads it.
        """
        return open_model_file(cls, path, manifest)

    @classmethod
    def from_data(cls, data, *, builder=None, **options):
        """Return a new model for `data`, with vocabularies made of its training part.

        Args:
            data: a `ka.data.DataSet` of `example_kind`, or a list of raw training examples.
            builder: str, where the class has several: see `builders`.
            **options: numbers of the recipe, such as `learning_rate` or `max_length`, and keywords
                of the builder, such as `num_layers` or `position`. Those not given are the
                recipe's, in `ka.tasks.recipes`.

        Returns:
            A task that is to be trained with `fit`.
        """
        builder = cls.check_builder(builder, ".from_data")
        recipe = recipes.split_options(recipes.choose_recipe(builder), options)
        keras.utils.set_random_seed(recipe.seed)
        return cls.build(cls.as_data(data), recipe, builder)

    @classmethod
    def build(cls, data, recipe, builder):
        """Return a new task for a data set, by a `Recipe`."""
        check_train(data.train)
        model, preprocessor, settings = cls.make_parts(data, recipe, builder)
        task = cls(model, preprocessor, builder=builder, **settings)
        task.recipe = recipe
        return task

    @classmethod
    def as_data(cls, examples):
        """Return a data set as it is, or make one of a list of training examples."""
        if not isinstance(examples, DataSet):
            return cls.collect(examples)
        if examples.kind is not cls.example_kind:
            raise ValueError(
                f"{cls.__name__} takes a data set of {cls.example_kind.__name__}, {cls.holds}, and "
                f"this is {examples!r}."
            )
        return examples

    # The model, and what runs.

    @property
    def model(self):
        """Return the Keras model, whichever file of a preset predicts."""
        if self._model is None:
            path = self.path.parent / MODEL if self.runs_a_file else self.path
            if not path.exists():
                raise ValueError(
                    f"{path.parent} holds no {MODEL}: {self.path.name} predicts and is evaluated, "
                    "but cannot be trained on, exported or looked into."
                )
            check_unchanged(path)
            self._model = files.load_keras_model(path)
        return self._model

    @property
    def runs_a_file(self):
        """Return whether an exported file predicts, and not the Keras model."""
        return self.path is not None and files.find_format(self.path) != "keras"

    def __getstate__(self):
        """Leave out the runner: what it compiled cannot be pickled or copied."""
        return {name: value for name, value in vars(self).items() if name != "runner"}

    @functools.cached_property
    def runner(self):
        """Return what predicts: the model, or the exported file that was opened."""
        if self.runs_a_file:
            return self.open_runner(self.path)
        return self.wrap_model(self.model, self.path)

    def forget_runner(self):
        """Return what runs is the model in memory from now on."""
        self.path = None
        vars(self).pop("runner", None)

    def open_runner(self, path):
        """Open the exported file `path` as a function, if it fits the preprocessor."""
        run = load_runner(path)
        self.check_runner(path, run)
        if isinstance(self.preprocessor, TokenizerOwner):
            run.padding_id = self.preprocessor.padding_id
        return run

    def wrap_model(self, model, path=None):
        """Return the same of a Keras model, loaded from `path` or made here."""
        run = wrap_model(model, path)
        if path is not None:
            self.check_runner(path, run)
        return run

    @property
    def metadata(self):
        """Return the manifest's entries beside files and preprocessing."""
        about = {"task": self.builder, **self.source, **self.settings}
        about |= {"pretrained": True} if self.pretrained else {}
        return about | ({} if self.example == type(self).example else {"example": self.example})

    @property
    def facts(self):
        """Return what a card says of it: `ka.export.card.Facts`."""
        about = self.builder, type(self).__name__, self.model.count_params(), self.example
        return card.Facts(*about, self.takes_context, self.converses)

    # Training.

    def fit(
        self,
        train,
        validation_data=None,
        *,
        epochs=None,
        minutes=None,
        batch_size=None,
        learning_rate=None,
        backup_dir=None,
        callbacks=(),
        verbose="auto",
        **options,
    ):
        """Trains the model on raw examples, and keeps the weights of its best epoch.

        Where examples have labels that the model does not know, it gets a new last layer for the
        labels that are there, and says so; the other layers go on from what they learnt.

        Args:
            train: list of raw examples, or a `ka.data.DataSet` of `example_kind`: then its
                development part is `validation_data`.
            validation_data: raw examples to choose the best epoch on; None holds a tenth of `train`
                out.
            epochs, batch_size, learning_rate: as in Keras; None for the recipe's, in smaller
                batches where examples are few.
            minutes: float, ends the training after so many, within an epoch, too; the learning rate
                falls with the time.
            backup_dir: folder that keeps the state of each epoch, so that the same call goes on
                after a stop; None keeps it until the end of this call only.
            callbacks: list of Keras callbacks.
            verbose: what Keras prints, as in `keras.Model.fit`. Unless it is 0 or False, what is
                left out of the data, and advice, are logged as warnings.
            **options: other numbers of the recipe: `seed`, `weight_decay`, `label_smoothing`, ...

        Returns:
            A `keras.callbacks.History`.
        """
        from keras_attention.tasks.fitting import fit_task

        recipes.refuse_settled(options)
        numbers = {
            "epochs": epochs,
            "minutes": minutes,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            **options,
        }
        data = self.as_data(train)
        dev = data.dev if validation_data is None else self.as_data(validation_data).train
        return fit_task(
            self, data, dev, numbers, backup_dir=backup_dir, callbacks=callbacks, verbose=verbose
        )

    def make_job(self, train, dev, recipe):
        """Return the `Job` of a training on raw examples."""
        from keras_attention.tasks.training import Job

        check_train(train)
        return Job(
            model=self.model,
            train=self.make_training_batches(train, recipe),
            dev=self.make_batches(dev, "The dev part"),
            metrics=self.make_metrics(),
            loss=self.make_loss(recipe, train),
            lower_is_better=self.lower_is_better,
        )

    # What a trained task gives.

    def evaluate(self, examples, where="The examples"):
        """Return scores on raw examples, or on the test part of a data set.

        Args:
            where: str, what errors call the examples.

        Returns:
            dict, name -> score; {} where there is no example. For tasks with labels its attribute
            `classes` has precision, recall and F1 of each label, and `confusion` how often each
            label was taken for which; `ka.visualization.confusion_map` draws that.
        """
        if isinstance(examples, DataSet):
            self.check_data(self.as_data(examples))
            examples = examples.test
        else:
            examples = self.collect(examples).train
        for note in self.describe_scored(examples):
            LOG.warning(note)
        return self.compute_scores(examples, where) if len(examples) else {}

    def export(
        self,
        path,
        *,
        format=None,
        quantization=None,
        batch_size=None,
        sequence_length=None,
        compatible_with=(),
        calibration=None,
    ):
        """Exports the model and compares the file's numbers with the model's.

        What an app needs beside the file lies beside it: the vocabularies or the tokenizer, the
        labels, and `manifest.json`, which says how a raw example becomes the file's inputs. Files
        of these names that are of something else, or of another model, stay, with a warning.

        Args:
            path: file or folder to write.
            format: `"litert"` or `"saved_model"`; None for LiteRT where `path` ends in `.tflite`.
            quantization, batch_size, sequence_length, compatible_with: as for
                `ka.export.to_litert`.
            calibration: raw examples to measure activations on, for `quantization="int8"`.

        Returns:
            `ka.export.ExportReport`.
        """
        from keras_attention.tasks.exporting import export_model, keep_preprocessing

        if format is None:
            format = "litert" if pathlib.Path(path).suffix == ".tflite" else "saved_model"
        examples = None if quantization == "int8" else self.make_examples()
        with keep_preprocessing(self.preprocessor, path):
            return export_model(
                self.make_exportable(self.model),
                path,
                format=format,
                quantization=quantization,
                batch_size=batch_size,
                sequence_length=sequence_length,
                compatible_with=compatible_with,
                examples=examples if calibration is None else self.list_inputs(calibration),
                metadata=self.metadata,
            )

    def list_inputs(self, examples, count=CALIBRATING, where="The examples"):
        """Arrays as the model takes them, a list of batches, of raw examples."""
        batches = self.make_batches(self.as_data(examples).train, where)
        if batches is None:
            raise ValueError(f"{where}: there is no example to measure activations on.")
        return [inputs for inputs, _ in batches.take(count).as_numpy_iterator()]

    def save_to_preset(self, folder, *, weights_dtype=None, overwrite=False):
        """Writes all that `from_preset` and the command line need: model, vocabularies, card.

        Args:
            folder: path, new or empty.
            weights_dtype: `"float16"` halves the file; None keeps float32. Either is loaded, and
                trained on, as float32.
            overwrite: bool, whether a preset that is there may be replaced.
        """
        folder = RunFolder(folder, {"preset": self.builder}, replace=overwrite)
        with folder.fill() as result:
            self.save_files(result, weights_dtype)
            write_json(result / SCORES, self.scores)
            manifests.record_files(result, MODEL, **self.metadata)
            (result / CARD).write_text(card.write_preset_card(self.facts, self.scores), "utf-8")

    def save_files(self, folder, weights_dtype=None):
        """Writes model and vocabularies into `folder`, with a manifest.

        The optimizer stays out: its state is two thirds of a file, and no training goes on from it.
        """
        from keras_attention.core import sharing
        from keras_attention.tasks.model_file import save_model

        model = sharing.copy_model(self.model) if self.model.compiled else self.model
        save_model(model, folder / MODEL, weights_dtype)
        self.preprocessor.save(folder)
        manifests.record_files(folder, MODEL)


def check_train(examples):
    """Refuses to train on no example."""
    if not len(examples):
        raise ValueError("There is nothing to train on: train= holds no example.")
