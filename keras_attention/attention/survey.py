"""What the layers of a model would remember, asked of them without running it on values."""

import collections
import re

import keras

from keras_attention import scope
from keras_attention.paths import paths_in


def input_like(tensor, batch_size=None):
    """A `keras.Input` with the name, dtype and shape of `tensor`, but for the batch if given."""
    shape = (tensor.shape[0] if batch_size is None else batch_size, *tensor.shape[1:])
    return keras.Input(batch_shape=shape, dtype=tensor.dtype, name=tensor.name)


class _Survey(scope.Memory):
    """Asks every layer that runs what it would keep."""

    def __init__(self, length):
        super().__init__({}, {}, length)
        self.places, self.specs = [], []

    def __enter__(self):  # some backends trace twice
        self._runs.clear(), self.places.clear(), self.specs.clear()
        return super().__enter__()

    def open(self, layer, **specs):
        for name, spec in specs.items():
            self.places.append((layer, name, self._runs[id(layer), name]))
            self.specs.append(spec)
        self._runs.update((id(layer), name) for name in specs)


class _Trace(keras.layers.Layer):
    """Runs a model under a survey, without values."""

    def __init__(self, model, survey):
        super().__init__(autocast=False)
        self.model, self.survey = model, survey

    def call(self, inputs):
        with self.survey:
            return self.model(inputs)


def survey(model, length):
    """({(layer id, name, run): key}, {key: (shape, dtype)}) of what the layers of `model` keep."""
    asked = _Survey(length)
    _Trace(model, asked)(keras.tree.map_structure(input_like, model.input))
    if not asked.places:
        raise ValueError(
            f"Nothing in {model.name} remembers with memory_length={length}: what does is "
            "MultiHeadAttention over one tensor, as query and value, and MemorizingAttention."
        )
    paths = paths_in(model)
    places = [(id(layer), name, run) for layer, name, run in asked.places]
    keys = numbered(f"{paths[layer]}_{name}" for layer, name, _ in places)
    return dict(zip(places, keys, strict=True)), dict(zip(keys, asked.specs, strict=True))


def numbered(names):
    """Names that every format accepts (letters, digits, underscores), numbered when repeated."""
    seen, unique = collections.Counter(), []
    for name in names:
        name = re.sub(r"\W", "_", name)
        unique.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return unique
