"""Functions of tensors, compiled once for all lengths: `compiled(owner, key, function)`."""

import collections

import keras

KEPT = 16  # compiled functions of one model; the one that was not used for longest goes first


def compiled(owner, key, function, tensors, specs=None):
    """`function`, of nested dicts of tensors, compiled where the backend can.

    It is kept with `owner`, so that it is traced once for the same key, and goes when `owner` goes.
    On TensorFlow one graph serves every size of an axis; on JAX each has its own; PyTorch runs as
    it is.

    Args:
        owner: what `function` computes with: a decoder, whose `variables` may change.
        key: hashable, what `function` depends on beside its tensors.
        function: (tensors) -> nested dict of tensors.
        tensors: nested dict of tensors as those of later calls, in all but sizes.
        specs: the like with `TensorSpec`s on TensorFlow; those of `tensors` by default.

    Returns:
        `Compiled`.
    """
    kept = vars(owner).setdefault("_compiled", collections.OrderedDict())
    specs = _specs(tensors) if specs is None else specs
    leaves = [(path, str(spec)) for path, spec in keras.tree.flatten_with_path(specs)]
    key = (key, tuple(leaves))
    if key not in kept:
        kept[key] = Compiled(owner, function, specs)
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return kept[key]


class Compiled:
    """A function that is traced when it is first called.

    Attributes:
        traces: int, how often it was traced; on PyTorch, called.
    """

    def __init__(self, owner, function, specs):
        self.owner, self.function, self.traces = owner, function, 0
        self.run = getattr(self, f"_{keras.backend.backend()}", self._trace)(specs)

    def __call__(self, tensors):
        return self.run(tensors)

    def _trace(self, tensors):
        self.traces += 1
        return self.function(tensors)

    def _tensorflow(self, specs):
        import tensorflow as tf

        return tf.function(self._trace, input_signature=[specs], autograph=False)

    def output_specs(self):
        """On TensorFlow the `TensorSpec`s of what the function returns; None elsewhere."""
        if keras.backend.backend() != "tensorflow":
            return None
        import tensorflow as tf

        outputs = self.run.get_concrete_function().structured_outputs
        return keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), outputs)
