"""`Task`: a model and its preprocessor as one object, to train, evaluate, save and export."""

import functools
import logging
import pathlib

from keras_attention.core.lazy import keras
from keras_attention.data.dataset import DataSet
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.export import card
from keras_attention.export.checks import runner as files
from keras_attention.files import manifest as manifests
from keras_attention.files.fields import Fields
from keras_attention.files.io import write_json
from keras_attention.files.manifest import check_unchanged
from keras_attention.tasks import recipes
from keras_attention.tasks.folders import (
    CARD,
    MANIFEST,
    MODEL,
    SCORES,
    SOURCE,
    RunFolder,
    read_task_manifest,
)
from keras_attention.tasks.interface import TaskInterface
from keras_attention.tasks.opening import open_preset
from keras_attention.tasks.runners import load_runner, wrap_model

LOG = logging.getLogger(__name__)
CALIBRATING = 8  # maximum number of batches that calibrate an int8 export


class Task(TaskInterface):
    """A model with its preprocessor, which accepts raw examples and returns plain Python objects.

    Each kind of task is a subclass in `ka.tasks`. `from_preset` opens a trained task, `from_data`
    makes a new one, and the constructor wraps your own functional model and preprocessor.

    Args:
        model: functional `keras.Model` from a function in `builders`, or your own with the same
            inputs and outputs.
        preprocessor: a preprocessor from `ka.data`, which converts raw examples to model inputs,
            and model outputs to answers.
        builder: str, the name of the function in `ka.models` that makes such models. None selects
            the first name in `builders`.

    Attributes:
        model: the Keras model.
        preprocessor: the preprocessor.
        pretrained: bool, whether the model was initialized from a Hugging Face checkpoint.
        checkpoint: path of that checkpoint's folder if this process loaded it, else None.
        builders: tuple of str, names of functions in `ka.models` that make models for this task.
        example_kind: the class of one raw training example, such as `ka.data.Text`.
    """

    def __init__(self, model, preprocessor, *, builder=None):
        self._model, self.preprocessor = model, preprocessor
        self.builder = self.check_builder(builder, "")
        self.source = {"dataset": None, "label_column": None}
        self.recipe = recipes.choose_recipe(self.builder)
        self.path, self.manifest, self.scores = None, {}, {}
        self.pretrained, self.checkpoint = False, None

    def __repr__(self):
        content = str(self.path)
        if self.path is None and self._model is not None:
            content = f"{self._model.name}, {self._model.count_params():,} parameters"
        labels = self.settings.get("labels")
        kinds = "" if labels is None else f", {len(labels)} labels"
        return f"{type(self).__name__}({self.builder}: {content}{kinds})"

    @classmethod
    def check_builder(cls, builder, function):
        """Check the name of a function in `ka.models` that makes models, and return it.

        Args:
            builder: str, a name in `builders`. None selects the first of them.
            function: str, the calling function, for the error message, such as `".from_data"`.

        Raises:
            ValueError: `builder` is not in `builders`.
        """
        builder = cls.builders[0] if builder is None else builder
        if builder not in cls.builders:
            raise ValueError(
                f"{cls.__name__}{function}(builder={builder!r}): expected one of "
                f"{', '.join(cls.builders)}."
            )
        return builder

    # Constructors.

    @classmethod
    def from_preset(cls, preset, file=None, **options):
        """Open a trained task that was saved to a folder, or a Hugging Face checkpoint.

        If a checkpoint does not have the head of this task, the model gets a randomly initialized
        head, which must be trained with `fit`.

        Args:
            preset: str or path, the folder or the name of a preset, or a checkpoint such as
                `"hf://name"`.
            file: the format of the file to run: `"keras"`, `"saved_model"`, `"litert"` or
                `"litert-int8"`. None selects the first of these that exists.
            **options: options for Hugging Face checkpoints. Each class has its own:
                - `MaskedLM`, `CausalLM`: `max_length`, the number of tokens in a window.
                - `Seq2SeqLM`: `max_length`, the maximum number of tokens to generate, `beam`,
                  `length_penalty`, `score`, and `prefix`, a string to prepend to every source, such
                  as T5's `"translate English to German: "`.
                - `SpeechToText`: `language`, `task` (`"transcribe"` or `"translate"`),
                  `max_length`, `beam` and `length_penalty`.
                - `TextClassifier`, `MultiLabelClassifier`: `pooling`, how a new head pools the
                  token vectors. Hugging Face's classifiers use `"first"`, the first vector.
                - `TextEmbedder`: `pooling`, how the vectors of the tokens become one. The default
                  is the pooling in Sentence Transformers' files, or else `"mean"`.
        """
        return open_preset(cls, preset, file, options)

    @classmethod
    def open_file(cls, path, manifest=None):
        """Make a task that runs a model file, with the preprocessor in the same folder.

        Args:
            path: path of a `.keras` file, a SavedModel or a `.tflite` file.
            manifest: dict, the content of `manifest.json` in that folder. None reads the file.

        Returns:
            A task of this class.
        """
        path = pathlib.Path(path)
        manifest = read_task_manifest(path.parent) if manifest is None else manifest
        settings = cls.read_settings(Fields(path.parent / MANIFEST, manifest))
        preprocessor = cls.load_preprocessor(path.parent, manifest)
        task = cls(None, preprocessor, builder=manifest["task"], **settings)
        task.source = {name: manifest[name] for name in SOURCE if name in manifest}
        has_tokenizer = isinstance(preprocessor, TokenizerOwner) and preprocessor.is_pretrained
        task.pretrained = manifest.get("pretrained", has_tokenizer)
        kind = recipes.PRETRAINED if task.pretrained else manifest.get("dataset") or recipes.FILES
        task.recipe = recipes.slow_down(recipes.choose_recipe(task.builder, kind))
        task.path, task.manifest = path, manifest
        task.example = manifest.get("example") or cls.example
        return task

    @classmethod
    def from_data(cls, data, *, builder=None, **options):
        """Make a task with a new, untrained model for a dataset.

        Vocabularies and labels are collected from the training split.

        Args:
            data: a `ka.data.DataSet` of `example_kind`, or a list of raw training examples.
            builder: str, the name of the function in `ka.models` that makes the model, one of
                `builders`. None selects the first.
            **options: hyperparameters, such as `learning_rate` or `max_length`, and arguments of
                that function, such as `num_layers` or `position`. Their defaults are in
                `ka.tasks.recipes`.

        Returns:
            A task to train with `fit`.
        """
        builder = cls.check_builder(builder, ".from_data")
        recipe = recipes.split_options(recipes.choose_recipe(builder), options)
        keras.utils.set_random_seed(recipe.seed)
        return cls.build(cls.as_data(data), recipe, builder)

    @classmethod
    def build(cls, data, recipe, builder):
        """Make a task with an untrained model for `data`, a `DataSet`.

        `recipe` is a `Recipe`, the hyperparameters. `builder` is the name of the function in
        `ka.models` that builds the model.
        """
        check_train(data.train)
        model, preprocessor, settings = cls.make_parts(data, recipe, builder)
        task = cls(model, preprocessor, builder=builder, **settings)
        task.recipe = recipe
        return task

    @classmethod
    def as_data(cls, examples):
        """Return `examples`, a `DataSet`, or make a `DataSet` whose training split is `examples`.

        Raises:
            ValueError: the examples of the dataset are not of the class `example_kind`.
        """
        if not isinstance(examples, DataSet):
            return cls.collect(examples)
        if examples.kind is not cls.example_kind:
            raise ValueError(
                f"{cls.__name__} takes a dataset of {cls.example_kind.__name__} ({cls.holds}), "
                f"and received {examples!r}."
            )
        return examples

    # The model and the runner.

    @property
    def model(self):
        """Return the Keras model.

        If the task runs an exported file, the model is loaded from `model.keras` in its folder.
        Raise a ValueError if that file does not exist.
        """
        if self._model is None:
            path = self.path.parent / MODEL if self.runs_a_file else self.path
            if not path.exists():
                raise ValueError(
                    f"{path.parent} has no {MODEL}. {self.path.name} can predict and be "
                    "evaluated, but it cannot be trained, exported or visualized."
                )
            check_unchanged(path)
            self._model = files.load_keras_model(path)
        return self._model

    @property
    def runs_a_file(self):
        """bool, whether `predict` and `evaluate` run an exported file, not the Keras model."""
        return self.path is not None and files.find_format(self.path) != "keras"

    def __getstate__(self):
        """Return the attributes to pickle. `runner` is left out, because it may be compiled."""
        return {name: value for name, value in vars(self).items() if name != "runner"}

    @functools.cached_property
    def runner(self):
        """Return the function that maps model inputs to outputs.

        The function runs either the exported file that was opened, or the Keras model.
        """
        if self.runs_a_file:
            return self.open_runner(self.path)
        return self.wrap_model(self.model, self.path)

    def forget_runner(self):
        """Close the exported file that predictions used. Later predictions use the Keras model."""
        self.path = None
        vars(self).pop("runner", None)

    def open_runner(self, path):
        """Return a function that runs the exported model file at `path`.

        Raises:
            ValueError: the sizes of the file do not match the preprocessor.
        """
        run = load_runner(path)
        self.check_runner(path, run)
        if isinstance(self.preprocessor, TokenizerOwner):
            run.padding_id = self.preprocessor.padding_id
        return run

    def wrap_model(self, model, path=None):
        """Return a function that runs a Keras model.

        `path` is the file that the model was loaded from, or None if it was made in memory. Only a
        loaded model is compared with the preprocessor.
        """
        run = wrap_model(model, path)
        if path is not None:
            self.check_runner(path, run)
        return run

    @property
    def metadata(self):
        """dict, the entries of `manifest.json` about the task: its name, data and settings."""
        entries = {"task": self.builder, **self.source, **self.settings}
        if self.pretrained:
            entries["pretrained"] = True
        if self.example != type(self).example:
            entries["example"] = self.example
        return entries

    @property
    def facts(self):
        """Return `ka.export.card.Facts`, the facts about the task for the model card."""
        sizes = self.builder, type(self).__name__, self.model.count_params(), self.example
        return card.Facts(*sizes, self.takes_context, self.converses)

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
        """Train the model on raw examples, and restore the weights of the best epoch.

        If the examples have labels that the model lacks, the last layer is replaced by a new one
        for the labels in the data, and a log message reports this. The other layers keep their
        weights.

        Args:
            train: list of raw examples, or a `ka.data.DataSet` of `example_kind`.
            validation_data: raw examples that select the best epoch. With None, the development
                split of `train` is used if `train` is a `DataSet` with such a split. Otherwise a
                tenth of the training examples is held out.
            epochs, batch_size, learning_rate: as in Keras. None uses the default of the task in
                `ka.tasks.recipes`, with smaller batches for small datasets.
            minutes: float, the time limit. Training may stop in the middle of an epoch. The
                learning rate schedule follows the elapsed time.
            backup_dir: folder to save the training state in after each epoch. After an interruption
                the same call resumes from this state. None deletes the state when the call ends.
            callbacks: list of Keras callbacks.
            verbose: as in `keras.Model.fit`. Unless it is 0 or False, the number of the best epoch
                is printed, and advice and notes about skipped examples are logged as warnings.
            **options: other hyperparameters of training, such as `seed`, `weight_decay` and
                `label_smoothing`.

        Returns:
            A `keras.callbacks.History`.
        """
        from keras_attention.tasks.fitting import fit_task

        recipes.refuse_settled(options)
        numbers = {"epochs": epochs, "minutes": minutes, "batch_size": batch_size}
        numbers |= {"learning_rate": learning_rate, **options}
        data = self.as_data(train)
        dev = data.dev if validation_data is None else self.as_data(validation_data).train
        options = {"backup_dir": backup_dir, "callbacks": callbacks, "verbose": verbose}
        return fit_task(self, data, dev, numbers, **options)

    def make_job(self, train, dev, recipe):
        """Return a `Job` for `train_model`: the model with batches, loss and metrics.

        `train` and `dev` are raw examples, and `recipe` is a `Recipe`, the hyperparameters.
        """
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

    # Scores and files.

    def evaluate(self, examples, where="The examples"):
        """Compute the scores of the model on raw examples, or on the test split of a dataset.

        Args:
            examples: list of raw examples, or a `ka.data.DataSet`, whose test split is used.
            where: str, how error messages refer to the examples.

        Returns:
            A dict from the name of a score to its value, or {} without examples. For tasks
            with labels the dict has two attributes. `classes` contains the precision, recall and F1
            of each label. `confusion` contains the confusion counts, which
            `ka.visualization.confusion_map` draws.
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
        """Write the model as LiteRT or SavedModel, and compare the file's outputs with the model's.

        The other files that an app needs are written to the same folder: the vocabularies or the
        tokenizer, the labels, and `manifest.json`, which describes how to convert a raw example to
        model inputs. If a vocabulary of another model is already there under the same name, it is
        not overwritten, and a warning is logged.

        Args:
            path: path of the file or folder to write.
            format: `"litert"` or `"saved_model"`. None selects LiteRT if `path` ends in `.tflite`,
                and SavedModel otherwise.
            quantization: `"float16"`, `"int8_weights"`, `"int4_weights"` or `"int8"`, how LiteRT
                files store weights. None for float32.
            batch_size, sequence_length: int, fixed sizes of the inputs. None accepts any size.
            compatible_with: `"interpreter"`, `"gpu"` or `"web"`, or a list of them: the runtimes
                that must be able to run a LiteRT file.
            calibration: list of raw examples for measuring the ranges of activations, required for
                `quantization="int8"`.

        Returns:
            A `ka.export.ExportReport`: the file's size and operators, and how far its outputs
                differ from the outputs of the model.
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
        """Convert raw examples to batches of model inputs, for checking or calibrating an export.

        Args:
            examples: list of raw examples, or a `ka.data.DataSet`, whose training split is used.
            count: int, the maximum number of batches.
            where: str, how error messages refer to the examples.

        Returns:
            A list of batches.
        """
        batches = self.make_batches(self.as_data(examples).train, where)
        if batches is None:
            raise ValueError(f"{where} are empty: expected one or more to measure activations on.")
        return self.take_inputs(batches, count)

    def save_to_preset(self, folder, *, weights_dtype=None, overwrite=False):
        """Write the model, its vocabularies and a model card to a folder, called a preset.

        `from_preset` and the command line can open a preset.

        Args:
            folder: path of a new or empty folder.
            weights_dtype: `"float16"` stores the weights in float16, which halves the size of the
                file. None stores them in float32. In both cases they are loaded as float32.
            overwrite: bool, whether to replace an existing preset in the folder.
        """
        folder = RunFolder(folder, {"preset": self.builder}, replace=overwrite)
        with folder.fill() as result:
            self.save_files(result, weights_dtype)
            write_json(result / SCORES, self.scores)
            manifests.record_files(result, MODEL, **self.metadata)
            (result / CARD).write_text(card.write_preset_card(self.facts, self.scores), "utf-8")

    def save_files(self, folder, weights_dtype=None):
        """Write the model without its optimizer, the preprocessor's files and `manifest.json`.

        `folder` is a path. `weights_dtype` is `"float16"`, or None for float32.
        """
        from keras_attention.core import sharing
        from keras_attention.tasks.model_file import save_model

        model = sharing.copy_model(self.model) if self.model.compiled else self.model
        save_model(model, folder / MODEL, weights_dtype)
        self.preprocessor.save(folder)
        manifests.record_files(folder, MODEL)


def check_train(examples):
    """Raise a ValueError if `examples` is empty."""
    if not len(examples):
        raise ValueError("There is nothing to train on: train= is empty.")
