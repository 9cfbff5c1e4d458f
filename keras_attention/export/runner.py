"""Files as plain functions: a dict of arrays in, a dict of arrays out, whatever the format."""

import contextlib
import pathlib

import numpy as np

from keras_attention.export import backend, endpoint, files, keras_file


def load(path, signature=None):
    """A function that runs the model in `path`, a `.keras` file, a SavedModel or a `.tflite`.

    A SavedModel is run by TensorFlow and a `.tflite` by the stock LiteRT runtime, which is
    resized to the shapes it is given; neither imports Keras to do so.

    Args:
        path: the file or folder.
        signature: str, which function to run; by default `serving_default`, or the only one.

    Returns:
        A callable, dict of arrays -> dict of numpy arrays, with `inputs` (name -> dtype) and
        `outputs` (names) as attributes. An input that is missing or unknown is a ValueError.
    """
    path = pathlib.Path(path)
    return {"keras": Keras, "saved_model": SavedModel, "litert": LiteRT}[files.kind(path)](
        path, signature
    )


class Runner:
    """What the three formats share: the check of names, and dtypes as the file wants them."""

    inputs: dict
    outputs: list

    def __call__(self, inputs):
        if set(inputs) != set(self.inputs):
            raise ValueError(
                f"{self.path} takes the inputs {', '.join(self.inputs)}; "
                f"received {', '.join(map(str, inputs)) or 'none'}."
            )
        arrays = {
            name: np.asarray(inputs[name]).astype(dtype, copy=False)
            for name, dtype in self.inputs.items()
        }
        return self.run(arrays)

    def choose(self, names, signature):
        """The signature asked for, or the obvious one."""
        signature = signature or ("serving_default" if len(names) > 1 else next(iter(names), None))
        if signature not in names:
            raise ValueError(
                f"{self.path} has no signature {signature!r}. It has: {', '.join(names) or 'none'}."
            )
        return signature


class Keras(Runner):
    def __init__(self, path, signature=None):
        self.path = path
        self.endpoint = endpoint.of(keras_file.load(path))
        self.choose([self.endpoint.name], signature)
        self.inputs = {tensor.name: tensor.dtype for tensor in self.endpoint.inputs}
        self.outputs = list(self.endpoint.outputs)

    def run(self, arrays):
        return {name: np.asarray(value) for name, value in self.endpoint.call(arrays).items()}


class SavedModel(Runner):
    def __init__(self, path, signature=None):
        tf = backend.tensorflow()
        self.path, self.module = path, tf.saved_model.load(str(path))
        signature = self.choose(list(self.module.signatures), signature)
        self.function = self.module.signatures[signature]
        specs = self.function.structured_input_signature[1]
        self.inputs = {name: spec.dtype.as_numpy_dtype for name, spec in specs.items()}
        self.outputs = list(self.function.structured_outputs)

    def run(self, arrays):
        tf = backend.tensorflow()
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        return {name: value.numpy() for name, value in self.function(**tensors).items()}


class LiteRT(Runner):
    """A `.tflite` in the stock runtime; `xnnpack=False` runs the reference kernels instead."""

    def __init__(self, path, signature=None, *, xnnpack=True):
        litert = backend.litert()
        kinds = litert.OpResolverType
        kind = kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self.path, self.xnnpack = path, xnnpack
        with backend.quiet():
            self.interpreter = litert.Interpreter(
                model_path=str(path), experimental_op_resolver_type=kind
            )
        signatures = self.interpreter.get_signature_list()
        signature = self.choose(list(signatures), signature)
        self.function = self.interpreter.get_signature_runner(signature)
        details = self.function.get_input_details()
        self.inputs = {name: details[name]["dtype"] for name in signatures[signature]["inputs"]}
        self.outputs = list(signatures[signature]["outputs"])
        self.quiet = backend.quiet

    def run(self, arrays):
        with self.quiet():
            outputs = dict(self.function(**arrays))
        # It chatters once, and to keep it quiet takes longer than a small model does.
        self.quiet = contextlib.nullcontext
        return outputs
