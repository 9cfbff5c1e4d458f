"""Model files of any format as functions: a dict of arrays in, a dict of arrays out."""

import collections.abc
import contextlib
import pathlib
import re
import zipfile

import numpy as np

from keras_attention.core.lazy import keras
from keras_attention.core.versions import explain_newer_file
from keras_attention.export import backend, batches
from keras_attention.export.checks.formatting import format_shape
from keras_attention.export.errors import first_line
from keras_attention.export.graphs import flatbuffer
from keras_attention.files.manifest import check_unchanged


def find_format(path):
    """`"keras"`, `"saved_model"` or `"litert"`, by content; anything else is a ValueError."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return "saved_model"
    elif _starts_as_flatbuffer(path):
        return "litert"
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "config.json" in archive.namelist():
                return "keras"
    raise ValueError(
        f"{path} is no model: expected a .keras file, a SavedModel folder (one that holds "
        "saved_model.pb) or a .tflite file."
    )


def _starts_as_flatbuffer(path):
    with open(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3"


def load_keras_model(path):
    """The model in a `.keras` file, for inference; one that cannot be loaded is a ValueError."""
    load_model = keras.saving.load_model  # raises ImportError without Keras
    try:
        return load_model(path, compile=False)
    except Exception as error:
        if name := _find_unknown_class(error):
            raise ValueError(
                f"{path} holds an object of the class {name}, which is not known: import the "
                "module that registers it, and load the file in Python."
            ) from error
        reason = str(error).strip().splitlines()
        raise ValueError(
            f"{path} could not be loaded as a Keras model: {reason[0] if reason else error!r}"
            f"{explain_newer_file(path)}"
        ) from error


def _find_unknown_class(error):
    """The name of the class that Keras does not know, where an error or its cause is about that."""
    while error is not None:
        if found := re.search(r"Could not locate class '(\w+)'", str(error)):
            return found.group(1)
        error = error.__cause__ or error.__context__
    return None


def load(path, signature=None):
    """A function that runs the model in `path`, a `.keras` file, a SavedModel or a `.tflite`.

    A SavedModel is run by TensorFlow and a `.tflite` by the stock LiteRT runtime, which is
    resized to the shapes it is given; neither imports Keras to do so.

    Args:
        path: the file or folder.
        signature: str, which function to run; by default `serving_default`, or the only one.

    Returns:
        A callable, dict of arrays -> dict of numpy arrays, with `inputs` (name -> dtype) and
        `outputs` (names) as attributes. A ValueError says which input is missing or unknown, has
        another shape than the file takes, or numbers that its dtype cannot hold (ids with a
        fraction, or too large), and what the file could not be run on.

    Raises:
        ValueError: if `path` is no model, is damaged, or is not what its manifest says.
    """
    path = pathlib.Path(path)
    check_unchanged(path)
    kinds = {"keras": Keras, "saved_model": SavedModel, "litert": LiteRT}
    return kinds[find_format(path)](path, signature)


class Runner:
    """A model file as a function; its inputs are checked by name, shape and dtype."""

    inputs: dict
    shapes: dict  # of the inputs, None where any size is taken
    outputs: list

    def __repr__(self):
        inputs = ", ".join(f"{name} {format_shape(self.shapes[name])}" for name in self.inputs)
        return f"<{self.path}: a dict of {inputs} -> a dict of {', '.join(self.outputs)}>"

    def __call__(self, inputs):
        if not isinstance(inputs, collections.abc.Mapping):
            raise ValueError(
                f"{self.path} takes a dict of the inputs {', '.join(self.inputs)}; received "
                f"{type(inputs).__name__}."
            )
        if set(inputs) != set(self.inputs):
            raise ValueError(
                f"{self.path} takes the inputs {', '.join(self.inputs)}; "
                f"received {', '.join(map(str, inputs)) or 'none'}."
            )
        arrays = {name: self._array(name, inputs[name]) for name in self.inputs}
        try:
            return self.run(arrays)
        except Exception as error:
            raise ValueError(
                f"{self.path} cannot be run on {batches.describe_batch(arrays)}: "
                f"{first_line(error)}"
            ) from error

    def _array(self, name, values):
        """Return the values of an input as an array that the file takes."""
        wanted, shape = self.inputs[name], self.shapes[name]
        is_text = wanted == "string" or np.dtype(wanted).kind in "SOU"
        try:
            array = np.asarray(values)
        except ValueError as error:  # rows of different lengths
            raise ValueError(f"{self.path} takes an array for {name}: {error}.") from error
        axes = zip(shape, array.shape, strict=False)
        fits = len(shape) == array.ndim and all(size in (None, real) for size, real in axes)
        if not fits or 0 in array.shape:
            raise ValueError(
                f"{self.path} takes {name} of shape {format_shape(shape)}; received {array.shape}."
            )
        if is_text:
            return array if wanted == "string" else array.astype(wanted, copy=False)
        dtype = np.dtype(wanted).name
        try:
            return batches.cast_exactly(array, dtype)
        except ValueError as error:
            raise ValueError(f"{self.path} takes {dtype} for {name}; received {error}.") from error

    def choose_signature(self, names, signature):
        """The name of the signature asked for; by default `serving_default`, or the only one."""
        signature = signature or ("serving_default" if len(names) > 1 else next(iter(names), None))
        if signature not in names:
            raise ValueError(
                f"{self.path} has no signature {signature!r}. It has: {', '.join(names) or 'none'}."
            )
        return signature


class Keras(Runner):
    """A `.keras` file, or a `model` in memory, which `path` names in errors."""

    def __init__(self, path, signature=None, *, model=None):
        from keras_attention.export import endpoint

        self.path = path
        self.endpoint = endpoint.make_endpoint(load_keras_model(path) if model is None else model)
        self.choose_signature([self.endpoint.name], signature)
        self.inputs = {tensor.name: tensor.dtype for tensor in self.endpoint.inputs}
        self.shapes = {tensor.name: tensor.shape for tensor in self.endpoint.inputs}
        self.outputs = list(self.endpoint.outputs)

    def run(self, arrays):
        return {name: np.asarray(value) for name, value in self.endpoint.call(arrays).items()}


class SavedModel(Runner):
    def __init__(self, path, signature=None):
        tf = backend.import_tensorflow()
        self.path = path
        try:
            self.module = tf.saved_model.load(str(path))
        except Exception as error:
            raise ValueError(
                f"{path} could not be loaded as a SavedModel: {first_line(error)}"
            ) from error
        signature = self.choose_signature(list(self.module.signatures), signature)
        self.function = self.module.signatures[signature]
        specs = self.function.structured_input_signature[1]
        self.inputs = {name: spec.dtype.as_numpy_dtype for name, spec in specs.items()}
        self.shapes = {name: tuple(spec.shape) for name, spec in specs.items()}
        self.outputs = list(self.function.structured_outputs)

    def run(self, arrays):
        tf = backend.import_tensorflow()
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        return {name: value.numpy() for name, value in self.function(**tensors).items()}


class LiteRT(Runner):
    """A `.tflite` in the stock runtime; `xnnpack=False` runs the reference kernels instead."""

    def __init__(self, path, signature=None, *, xnnpack=True):
        litert = backend.import_litert()
        kinds = litert.OpResolverType
        kind = kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self.path, self.xnnpack = path, xnnpack
        flatbuffer.read_graph(path)  # refuses a graph that would crash the process
        try:
            with backend.hide_stderr():
                self.interpreter = litert.Interpreter(
                    model_path=str(path), experimental_op_resolver_type=kind
                )
        except (ValueError, RuntimeError) as error:
            raise ValueError(
                f"{path} could not be loaded as a LiteRT file: {first_line(error)}"
            ) from error
        signatures = self.interpreter.get_signature_list()
        signature = self.choose_signature(list(signatures), signature)
        self.signature = signature
        self.function = self.interpreter.get_signature_runner(signature)
        details = self.function.get_input_details()
        self.inputs = {name: details[name]["dtype"] for name in signatures[signature]["inputs"]}
        self.shapes = {
            name: tuple(None if n < 0 else int(n) for n in details[name]["shape_signature"])
            for name in self.inputs
        }
        self.outputs = list(signatures[signature]["outputs"])
        self.quiet = backend.hide_stderr

    def run(self, arrays):
        with self.quiet():
            outputs = dict(self.function(**arrays))
        # It logs in its first call only, and hiding that takes longer than a small model.
        self.quiet = contextlib.nullcontext
        return outputs
