"""Whether a model with layers of others gives token by token what it gives for a whole text."""

import keras
import numpy as np
from keras import ops

from keras_attention.generation.plan import LONGEST_PREFIX

LENGTH = 17  # of a short text: what looks back less is found out
TOLERANCE = {"float32": 1e-3, "float64": 1e-3}  # per unit of the largest logit (at least 1)
ROUGH = 0.05  # of what computes in half precision


def check(decoder):
    """Raises a ValueError if pieces of a text do not give what all of it gives.

    A layer that is not of this package may look at other tokens, or count them, and knows nothing
    of those before a piece. So models that have one are tried, on a text of a few tokens; models
    of our layers, and of those of Keras that take each token for itself, are not.
    """
    strangers = sorted(set(_strangers(decoder.decoder)))
    if not strangers:
        return
    lengths = _lengths(decoder.plan)
    length = sum(lengths)
    if 0 in lengths:
        return
    random = np.random.default_rng(0)
    size = min(x for x in (decoder.vocabulary_size, *_table_sizes(decoder.decoder)) if x)
    tokens = random.integers(size, size=(2, length)).astype("int32")
    source = None
    if decoder.has_source:
        source = keras.tree.map_structure(lambda x: _any(x, random), decoder.encoder.input)
    start = decoder.start(2, length, source)
    whole, _ = decoder.step(tokens, start, 0)
    pieces, cache, index = [], start, 0
    for count in lengths:
        logits, cache = decoder.step(tokens[:, index : index + count], cache, index)
        pieces.append(logits)
        index += count
    whole, pieces = (ops.convert_to_numpy(x) for x in (whole, ops.concatenate(pieces, axis=1)))
    error = float(np.abs(whole - pieces).max())
    dtypes = {layer.compute_dtype for layer in decoder.decoder._flatten_layers()}
    allowed = max(TOLERANCE.get(x, ROUGH) for x in dtypes) * max(1.0, float(np.abs(whole).max()))
    if not error <= allowed:
        raise ValueError(
            f"{decoder.model.name} gives other logits token by token than for a whole text (they "
            f"differ by {error:.1e}). In it {_listed(strangers)} may look at other tokens, or "
            "count them from the first one that is given: use a layer of keras_attention in its "
            "place, such as ka.blocks.TokenEmbedding(..., position='learned') for positions."
        )


def _lengths(plan):
    """Of the two pieces of a text: the first no shorter than a prefix, both within the positions.

    The second is 0 where there is room for a prefix alone, which is then all there can be.
    """
    least, first = plan.least_prompt(LONGEST_PREFIX), LENGTH - LENGTH // 2
    room = min(plan.longest.values(), default=max(least, first) + LENGTH // 2)
    first = max(least, min(first, (room + 1) // 2))
    return first, max(0, min(LENGTH // 2, room - first))


def _listed(names):
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _strangers(model):
    """Names of what a model does that may look at other tokens, as far as its kind tells."""
    for layer in model._flatten_layers(include_self=False):
        if type(layer).__module__.split(".")[0] not in ("keras", "keras_attention", "keras_hub"):
            yield layer.name
    yield from _strange_operations(model)


def _strange_operations(model):
    for operation in getattr(model, "operations", model.layers):
        if isinstance(operation, keras.Model):
            yield from _strange_operations(operation)
        elif not _takes_each_token_for_itself(operation):
            yield operation.name


def _takes_each_token_for_itself(operation):
    kind = type(operation)
    if kind.__module__.startswith("keras_attention."):
        return True
    if isinstance(operation, keras.layers.LayerNormalization | keras.layers.RMSNormalization):
        return list(np.ravel(operation.axis)) in ([-1], [2])
    return kind.__name__ in _EACH_FOR_ITSELF and kind.__module__.split(".")[0] in (
        "keras",
        "keras_hub",
    )


_EACH_FOR_ITSELF = {
    *("InputLayer", "Embedding", "ReversibleEmbedding", "Dense", "Dropout", "Identity"),
    *("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Activation", "ReLU", "Gelu", "Relu"),
    *("Silu", "Tanh", "Sigmoid", "Cast", "Equal", "NotEqual"),
}


def _table_sizes(model):
    layers = model._flatten_layers(include_self=False)
    return [layer.input_dim for layer in layers if isinstance(layer, keras.layers.Embedding)]


def _any(tensor, random):
    """Something that an encoder's input may be."""
    shape = [2, *(3 if axis is None else axis for axis in tensor.shape[1:])]
    if "int" in str(tensor.dtype):
        return ops.ones(shape, dtype=tensor.dtype)
    return ops.cast(random.random(shape), tensor.dtype)
