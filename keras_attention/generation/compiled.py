"""Compile the loops of generation once for all lengths, and store them with their model."""

import collections
import dataclasses
import functools

import keras

from keras_attention.core import scope

MAX_FUNCTIONS = 16  # per model. The least recently used one is removed first.


@dataclasses.dataclass(frozen=True)
class Spec:
    """The shape of a tensor, with None for sizes that vary between calls, and its dtype."""

    shape: tuple
    dtype: str


def get_compiled(decoders, key, function, specs):
    """Return `function` compiled, or the stored result of an earlier call with the same key.

    The compiled function is stored in the first decoder. It is compiled again if the number of
    weights changes, for example after `enable_lora`. On TensorFlow one graph works for all sizes
    that are None in `specs`. JAX compiles each size separately. On PyTorch the function is not
    compiled.

    Args:
        decoders: the decoders that `function` uses. Their `model` may be None.
        key: hashable value that identifies everything that `function` depends on, in addition to
            its tensors.
        function: function from a nested dict of tensors to a nested dict of tensors.
        specs: nested dict with the `Spec` of each input tensor.

    Returns:
        A `Compiled`, which is called like `function`.
    """
    functions = vars(decoders[0]).setdefault("_compiled", collections.OrderedDict())
    counts = [len(decoder.model.variables) if decoder.model else 0 for decoder in decoders]
    key = (key, *decoders[1:], tuple(_leaves(specs)), *counts)
    if key not in functions:
        functions[key] = Compiled(decoders, function, specs)
    functions.move_to_end(key)
    while len(functions) > MAX_FUNCTIONS:
        functions.popitem(last=False)
    return functions[key]


def _leaves(specs, path=()):
    """Return the entries of a nested dict of `Spec`s as a list of (tuple of keys, `Spec`)."""
    if isinstance(specs, Spec):
        return [(path, specs)]
    return [leaf for name in sorted(specs) for leaf in _leaves(specs[name], (*path, name))]


class Compiled:
    """A function that is compiled at its first call.

    `decoders`, `function` and `specs` are the arguments of `get_compiled`.

    Attributes:
        traces: int, how often the function was traced. On PyTorch, how often it was called.
    """

    def __init__(self, decoders, function, specs):
        self.decoders, self.function, self.traces = decoders, function, 0
        self._run = getattr(self, f"_{keras.backend.backend()}")(specs)

    def __call__(self, tensors):
        with scope.Recording(()):  # nothing is recorded while a function is traced
            return self._run(tensors)

    def output_specs(self, tensors):
        """Return a nested dict with the `Spec` of each output. Sizes that vary are None.

        `tensors` are the outputs of a call, which are only used if there is no TensorFlow graph.
        """
        if keras.backend.backend() == "tensorflow":
            tensors = self._run.get_concrete_function().structured_outputs
        return map_leaves(lambda x: Spec(tuple(x.shape), dtype_of(x)), tensors)

    def _trace(self, tensors):
        self.traces += 1
        with scope.NativeGraph():
            return self.function(tensors)

    def _tensorflow(self, specs):
        import tensorflow as tf

        signature = map_leaves(lambda spec: tf.TensorSpec(spec.shape, spec.dtype), specs)
        # TensorFlow counts traces by code: a partial makes each function a separate one.
        trace = functools.partial(self._trace)
        return tf.function(trace, input_signature=[signature], autograph=False)

    def _jax(self, specs):
        import jax

        models = [decoder.model for decoder in self.decoders if decoder.model]
        variables = [variable for model in models for variable in model.variables]

        @jax.jit
        def run(values, tensors):  # weights are arguments, because constants would be copied
            pairs = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                return self._trace(tensors)

        return lambda tensors: run([v.value for v in variables], tensors)

    def _torch(self, specs):
        import torch

        return torch.no_grad()(self._trace)


def map_leaves(function, tensors):
    """Return a nested dict with the results of `function` for each leaf of `tensors`.

    `tensors` is a nested dict. The leaves are the values that are not dicts.
    """
    if not isinstance(tensors, dict):
        return function(tensors)
    return {name: map_leaves(function, x) for name, x in tensors.items()}


def dtype_of(tensor):
    """Return the dtype of a tensor or array of any backend as Keras names it, such as "float32"."""
    return keras.backend.standardize_dtype(tensor.dtype)
