"""Load model files of any format as functions from a dict of arrays to a dict of arrays."""

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
    """Return the format of a model file: `"keras"`, `"saved_model"` or `"litert"`.

    The format is detected from the content, not from the name.

    Raises:
        ValueError: the file or folder is not a model.
        FileNotFoundError: the file or folder does not exist.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"The file or folder {path} does not exist. Check the path.")
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return "saved_model"
    else:
        with open(path, "rb") as file:
            if file.read(8)[4:] == b"TFL3":
                return "litert"
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if "config.json" in archive.namelist():
                    return "keras"
    raise ValueError(
        f"{path} is not a model. Expected a .keras file, a .tflite file, or a SavedModel folder "
        "(with saved_model.pb)."
    )


def load_keras_model(path):
    """Return the model in the `.keras` file `path`, for inference.

    Raise a ValueError if loading fails.
    """
    load_model = keras.saving.load_model  # raises an ImportError without Keras
    try:
        return load_model(path, compile=False)
    except Exception as error:
        if name := _find_unknown_class(error):
            raise ValueError(
                f"{path} contains an object of the unknown class {name}. Import the module that "
                "registers it, and load the file in Python."
            ) from error
        reason = str(error).strip().splitlines()
        raise ValueError(
            f"{path} could not be loaded as a Keras model: {reason[0] if reason else error!r}"
            f"{explain_newer_file(path)}"
        ) from error


def _find_unknown_class(error):
    """Return the name of the class if a Keras error is about an unknown class, or else None."""
    while error is not None:
        if match := re.search(r"Could not locate class '(\w+)'", str(error)):
            return match.group(1)
        error = error.__cause__ or error.__context__
    return None


def load(path, signature=None):
    """Load a model file as a function.

    A SavedModel runs in TensorFlow. A `.tflite` file runs in the standard LiteRT interpreter, which
    is resized to the shapes of the inputs. Neither imports Keras.

    Args:
        path: path of a `.keras` file, a SavedModel folder or a `.tflite` file.
        signature: str, the signature to run. None selects the only signature, or
            `serving_default` if there are several.

    Returns:
        A function from a dict of arrays to a dict of NumPy arrays. Its attribute `inputs` is a dict
        from the name of each input to its dtype, and `outputs` is a list of names. The function
        raises a ValueError if an input is missing or unknown, has a wrong shape, or has values that
        its dtype cannot represent (such as fractional ids).

    Raises:
        ValueError: `path` is not a model, is damaged, or differs from its manifest.
    """
    path = pathlib.Path(path)
    check_unchanged(path)
    kinds = {"keras": Keras, "saved_model": SavedModel, "litert": LiteRT}
    return kinds[find_format(path)](path, signature)


class Runner:
    """Base class of functions that run a model file on a dict of arrays, and check the arrays.

    Attributes:
        inputs: dict {name of an input: dtype}.
        shapes: dict {name of an input: shape, with None for dynamic axes}.
        outputs: list of str, the names of the outputs.
    """

    inputs: dict
    shapes: dict
    outputs: list

    def __repr__(self):
        inputs = ", ".join(f"{name} {format_shape(self.shapes[name])}" for name in self.inputs)
        return f"<{self.path}: a dict of {inputs} -> a dict of {', '.join(self.outputs)}>"

    def __call__(self, inputs):
        if not isinstance(inputs, collections.abc.Mapping):
            raise ValueError(
                f"{self.path} takes a dict of the inputs {', '.join(self.inputs)}. It received "
                f"{type(inputs).__name__}. Pass {{name: array}}."
            )
        if set(inputs) != set(self.inputs):
            raise ValueError(
                f"{self.path} takes the inputs {', '.join(self.inputs)}. It received "
                f"{', '.join(map(str, inputs)) or 'none'}. Pass exactly these inputs."
            )
        arrays = {name: self._array(name, inputs[name]) for name in self.inputs}
        try:
            return self.run(arrays)
        except Exception as error:
            raise ValueError(
                f"{self.path} cannot be run on {batches.describe_batch(arrays)}: "
                f"{first_line(error)} Check the shapes and values."
            ) from error

    def _array(self, name, values):
        """Convert the values of an input to an array, and check that the array fits the file."""
        expected, shape = self.inputs[name], self.shapes[name]
        is_text = expected == "string" or np.dtype(expected).kind in "SOU"
        try:
            array = np.asarray(values)
        except ValueError as error:  # rows of different lengths
            raise ValueError(
                f"{self.path} takes an array for {name}: {error}. Pad the rows to one length."
            ) from error
        axes = zip(shape, array.shape, strict=False)
        fits = len(shape) == array.ndim and all(size in (None, real) for size, real in axes)
        if not fits or 0 in array.shape:
            raise ValueError(
                f"{self.path} takes {name} of shape {format_shape(shape)}. It received "
                f"{array.shape}. Cut or pad the input."
            )
        if is_text:
            return array if expected == "string" else array.astype(expected, copy=False)
        dtype = np.dtype(expected).name
        try:
            return batches.cast_exactly(array, dtype)
        except ValueError as error:
            raise ValueError(
                f"{self.path} takes {dtype} for {name}. It received {error}. Convert the input."
            ) from error

    def choose_signature(self, names, signature):
        """Return the name of the signature to run, or raise a ValueError if it is not in `names`.

        If `signature` is None, return the only name, or `serving_default` if there are several.
        """
        signature = signature or ("serving_default" if len(names) > 1 else next(iter(names), None))
        if signature not in names:
            raise ValueError(
                f"{self.path} has no signature {signature!r}. It has: {', '.join(names) or 'none'}."
            )
        return signature


class Keras(Runner):
    """Runs a `.keras` file, or the Keras model `model`, whose `path` is a name for errors."""

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
    """Runs a `.tflite` file in the LiteRT interpreter.

    `path` is the path of the file, and `signature` the name of the function to run. None selects
    the only one. `xnnpack=False` uses the runtime's simple reference kernels instead of its fast
    CPU kernels.
    """

    def __init__(self, path, signature=None, *, xnnpack=True):
        litert = backend.import_litert()
        kinds = litert.OpResolverType
        kind = kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self.path, self.xnnpack = path, xnnpack
        flatbuffer.read_graph(path)  # raises an error for a graph that would crash the process
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
        # Only the first call logs messages. Hiding them takes longer than running a small model.
        self.quiet = contextlib.nullcontext
        return outputs
