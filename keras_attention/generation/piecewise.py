"""`get_decoder`: makes the `Decoder` of a model, and tests that the model reads token by token."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.generation.cache import LONGEST_PREFIX
from keras_attention.generation.decoder import Decoder

LENGTH = 17  # tokens of the test text. Layers that look back further than this are not detected.
TOLERANCE = {"float32": 1e-3, "float64": 1e-3}  # relative to the largest logit (at least 1)
HALF_TOLERANCE = 0.05  # for float16 and bfloat16


def get_decoder(model):
    """Return the `Decoder` of a model, or `model` itself if it is a decoder.

    The `Decoder` is stored in the model and used again, until the model gets other weights.
    """
    if not isinstance(model, keras.Model):
        return model if hasattr(model, "step") else Decoder(model)
    cached = vars(model)  # not `setattr`: Keras would track and save the value
    weights = [id(weight) for weight in model.weights]
    if cached.get("_decoder", (None,))[0] != weights:
        decoder = Decoder(model)
        with scope.Recording(()):  # hide the test from record_attention
            check_piecewise(decoder)
        cached["_decoder"] = weights, decoder
    return cached["_decoder"][1]


def check_piecewise(decoder):
    """Raise a ValueError if a model computes other logits when it reads a text in two pieces.

    `decoder` is the `Decoder` of the model, which calls it with a cache. A layer of another package
    may mix or count tokens, but does not use the cache. So a model with such layers is tested on a
    short random text. A model is not tested if all its layers are from this package, or are Keras
    layers that process each token independently.
    """
    layers = keras_internals.inner_layers(decoder.decoder)
    packages = ("keras", "keras_attention", "keras_hub")
    foreign = {x.name for x in layers if type(x).__module__.split(".")[0] not in packages}
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
            f"{decoder.model.name} computes other logits token by token than for a whole text "
            f"(they differ by {error:.1e}). {' or '.join(foreign)} may look at other tokens, or "
            "count tokens. Replace it with a layer of keras_attention, such as "
            "ka.blocks.TokenEmbedding(..., position='learned') for positions."
        )


def measure_piecewise_error(decoder, tokens, lengths, cache, expected):
    """Return how much the logits change if a model reads a text in pieces.

    Args:
        decoder: a `Decoder`.
        tokens: int32 (B, T), NumPy.
        lengths: ints, the lengths of the pieces.
        cache: an empty cache.
        expected: logits (B, T, vocabulary_size) of the whole text.

    Returns:
        Two floats: the largest absolute change, and the largest absolute logit, but at least 1.
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
    """Return the lengths of the two pieces of the test text.

    The first piece contains all tokens that must be read together. The second length is 0 if the
    model has no positions for more tokens.
    """
    least, first = decoder.min_prompt_length(LONGEST_PREFIX), LENGTH - LENGTH // 2
    room = decoder.max_positions or max(least, first) + LENGTH // 2
    first = max(least, min(first, (room + 1) // 2))
    return first, max(0, min(LENGTH // 2, room - first))


def _find_foreign_operations(model):
    """Yield the names of operations that may mix tokens, judged by their class."""
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
    """Return values for an input of the encoder: ones for integers, else random values."""
    shape = [2, *(3 if axis is None else axis for axis in tensor.shape[1:])]
    if "int" in str(tensor.dtype):
        return ops.ones(shape, dtype=tensor.dtype)
    return ops.cast(random.random(shape), tensor.dtype)
