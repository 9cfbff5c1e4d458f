"""`get_decoder`: the `Decoder` of a model, which is tested piece by piece against a whole text."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.generation.cache import LONGEST_PREFIX
from keras_attention.generation.decoder import Decoder

LENGTH = 17  # tokens of a short text: layers that look back by fewer are found
TOLERANCE = {"float32": 1e-3, "float64": 1e-3}  # per unit of the largest logit (at least 1)
HALF_TOLERANCE = 0.05  # of float16 and bfloat16


def get_decoder(model):
    """The `Decoder` of a model, kept while its weights stay the same; a `Decoder` as it is."""
    if not isinstance(model, keras.Model):
        return model if hasattr(model, "step") else Decoder(model)
    kept = vars(model)  # not `setattr`: Keras would track and save the value
    weights = [id(weight) for weight in model.weights]
    if kept.get("_decoder", (None,))[0] != weights:
        decoder = Decoder(model)
        with scope.Recording(()):  # nothing of this test is recorded
            check_piecewise(decoder)
        kept["_decoder"] = weights, decoder
    return kept["_decoder"][1]


def check_piecewise(decoder):
    """Raises a ValueError if a text gives other logits piece by piece than as a whole.

    A layer that is not of this package may look at other tokens, or count them, without a cache of
    those before a piece. So models that have one are tried on a text of a few tokens. Models
    whose layers are all ours, or layers of Keras that treat tokens one by one, are not.
    """
    layers = keras_internals.inner_layers(decoder.decoder)
    known = ("keras", "keras_attention", "keras_hub")
    foreign = {x.name for x in layers if type(x).__module__.split(".")[0] not in known}
    foreign = sorted({*foreign, *_find_foreign_operations(decoder.decoder)})
    lengths = _piece_lengths(decoder) if foreign else (0,)
    if 0 in lengths:
        return
    random = np.random.default_rng(0)
    tables = [x.input_dim for x in layers if isinstance(x, keras.layers.Embedding)]
    size = min(x for x in (decoder.vocabulary_size, *tables) if x)
    tokens = random.integers(size, size=(2, sum(lengths))).astype("int32")
    source = None
    if decoder.has_source:
        source = keras.tree.map_structure(lambda x: _draw_input(x, random), decoder.encoder.input)
    cache = decoder.start(2, sum(lengths), source)
    whole, _ = decoder.step(tokens, cache, 0)
    error, largest = measure_piecewise_error(decoder, tokens, lengths, cache, whole)
    dtypes = {layer.compute_dtype for layer in keras_internals.all_layers(decoder.decoder)}
    if not error <= max(TOLERANCE.get(x, HALF_TOLERANCE) for x in dtypes) * largest:
        raise ValueError(
            f"{decoder.model.name} gives other logits token by token than for a whole text (they "
            f"differ by {error:.1e}). In it {' or '.join(foreign)} may look at other tokens, or "
            "count them from the first one that is given: use a layer of keras_attention in its "
            "place, such as ka.blocks.TokenEmbedding(..., position='learned') for positions."
        )


def measure_piecewise_error(decoder, tokens, lengths, cache, expected):
    """The largest difference of logits piece by piece from `expected`, and the largest of these.

    Args:
        tokens: int32 (B, T), NumPy.
        lengths: ints, of the pieces of the text.
        cache: an empty cache.
        expected: logits (B, T, V) of the whole text.

    Returns:
        Two floats; the second is at least 1.
    """
    pieces, index = [], 0
    for length in lengths:
        piece = ops.convert_to_tensor(tokens[:, index : index + length])
        now = ops.convert_to_tensor(index, dtype="int32")
        logits, cache = decoder.step(piece, cache, now)
        pieces.append(ops.convert_to_numpy(logits))
        index += length
    expected = ops.convert_to_numpy(expected)
    error = float(np.abs(np.concatenate(pieces, axis=1) - expected).max())
    return error, max(1.0, float(np.abs(expected).max()))


def _piece_lengths(decoder):
    """Lengths of two pieces: the first no shorter than a prefix, both within the positions.

    The second is 0 where the positions end with the prefix.
    """
    least, first = decoder.min_prompt_length(LONGEST_PREFIX), LENGTH - LENGTH // 2
    room = decoder.max_positions or max(least, first) + LENGTH // 2
    first = max(least, min(first, (room + 1) // 2))
    return first, max(0, min(LENGTH // 2, room - first))


def _find_foreign_operations(model):
    """Names of operations that may look at other tokens, as far as their class tells."""
    for operation in model.layers if isinstance(model, keras.Sequential) else model.operations:
        if isinstance(operation, keras.Model):
            yield from _find_foreign_operations(operation)
        elif not _is_tokenwise(operation):
            yield operation.name


def _is_tokenwise(operation):
    kind = type(operation)
    if kind.__module__.startswith("keras_attention."):
        return True
    if isinstance(operation, keras.layers.LayerNormalization | keras.layers.RMSNormalization):
        return list(np.ravel(operation.axis)) in ([-1], [2])
    return kind.__name__ in _TOKENWISE and kind.__module__.split(".")[0] in ("keras", "keras_hub")


_TOKENWISE = {
    *("InputLayer", "Embedding", "ReversibleEmbedding", "Dense", "Dropout", "Identity"),
    *("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Activation", "ReLU", "Gelu", "Relu"),
    *("Silu", "Tanh", "Sigmoid", "Cast", "Equal", "NotEqual"),
}


def _draw_input(tensor, random):
    """Values that an encoder's input may have."""
    shape = [2, *(3 if axis is None else axis for axis in tensor.shape[1:])]
    if "int" in str(tensor.dtype):
        return ops.ones(shape, dtype=tensor.dtype)
    return ops.cast(random.random(shape), tensor.dtype)
