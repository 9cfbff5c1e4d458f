"""Functions of tensors that are compiled once for all lengths, and kept with their model."""

import collections
import dataclasses
import functools

import keras

from keras_attention.core import scope

KEPT = 16  # compiled functions of one model; the least recently used one goes first


@dataclasses.dataclass(frozen=True)
class Spec:
    """The shape of a tensor, None where sizes differ from call to call, and its dtype."""

    shape: tuple
    dtype: str


def get_compiled(owners, key, function, specs):
    """`function`, of a nested dict of tensors, compiled where the backend can.

    It is kept with the first owner, and traced once for each key, and again when a model has other
    weights than it had, such as those of `enable_lora`. On TensorFlow one graph serves
    every size of an axis; on JAX each size has its own; on PyTorch the function is not compiled.

    Args:
        owners: the decoders that `function` uses; the weights of their models may change. (One
            that is no `Decoder` may have None as its `model`.)
        key: hashable, all that `function` depends on beside its tensors.
        function: (tensors) -> nested dict of tensors.
        specs: nested dict of `Spec`.

    Returns:
        `Compiled`.
    """
    kept = vars(owners[0]).setdefault("_compiled", collections.OrderedDict())
    counts = [len(owner.model.variables) if owner.model else 0 for owner in owners]
    key = (key, *owners[1:], tuple(_leaves(specs)), *counts)
    if key not in kept:
        kept[key] = Compiled(owners, function, specs)
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return kept[key]


def _leaves(specs, path=()):
    """(path, `Spec`) of each in a nested dict."""
    if isinstance(specs, Spec):
        return [(path, specs)]
    return [leaf for name in sorted(specs) for leaf in _leaves(specs[name], (*path, name))]


class Compiled:
    """A function that is traced when it is first called.

    Attributes:
        traces: int, how often it was traced; on PyTorch, called.
    """

    def __init__(self, owners, function, specs):
        self.owners, self.function, self.traces = owners, function, 0
        self._run = getattr(self, f"_{keras.backend.backend()}")(specs)

    def __call__(self, tensors):
        with scope.Recording(()):  # nothing is recorded while a function is traced
            return self._run(tensors)

    def output_specs(self, tensors):
        """`Spec`s of what the function returns for `tensors`; sizes that may differ are None."""
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
        # TensorFlow counts traces by code: a partial is another function for each of these.
        trace = functools.partial(self._trace)
        return tf.function(trace, input_signature=[signature], autograph=False)

    def _jax(self, specs):
        import jax

        models = [owner.model for owner in self.owners if owner.model]
        variables = [variable for model in models for variable in model.variables]

        @jax.jit
        def run(values, tensors):  # weights as arguments: as constants they would be copied
            pairs = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                return self._trace(tensors)

        return lambda tensors: run([v.value for v in variables], tensors)

    def _torch(self, specs):
        import torch

        return torch.no_grad()(self._trace)


def map_leaves(function, tensors):
    """`function` of each leaf of a nested dict."""
    if not isinstance(tensors, dict):
        return function(tensors)
    return {name: map_leaves(function, x) for name, x in tensors.items()}


def dtype_of(tensor):
    """Return the dtype of a tensor or array of any backend, as Keras calls it."""
    return keras.backend.standardize_dtype(tensor.dtype)
