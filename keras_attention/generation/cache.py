"""The cache of a model that decodes: which tensors it needs, and empty ones to begin with."""

import itertools
import operator

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache

SOURCE_LENGTH = 3  # of a traced source
NUM_SAMPLES = 8192  # of one that is a waveform: several frames of any sampling rate
LONGEST_PREFIX = 4096  # tokens that attend to one another


def decoding_scope(cache, index):
    """Return a scope in which a functional model takes new tokens alone, one or many.

    The layers of the model find in the cache what they kept of earlier tokens, and leave there
    what the next call needs. Positions count on from `index`. It works in eager code, in traced
    functions and in exported ones. Layers of other packages do not use the cache: they must treat
    tokens one by one. `generate` and the exports test that; this function does not.

    Args:
        cache: dict of tensors, from `initial_cache` or from the scope of the call before.
        index: int or integer scalar, how many tokens the cache holds already. One that leaves no
            room for the new tokens is an error: a ValueError where it is known, and in a graph of
            TensorFlow an InvalidArgumentError when it runs. XLA, JAX's compiled functions and
            exported files raise nothing: they overwrite the last tokens.

    Returns:
        A context manager; its `cache` is the new one after the model has been called. Open a new
        scope for each call.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(30, 8, position="sinusoidal")(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    model = keras.Model(tokens, x)

    text = np.array([[5, 7, 11, 13]])
    cache = ka.generation.initial_cache(model, batch_size=1, max_length=8)
    with ka.generation.decoding_scope(cache, 0) as scope:
        first = model(text[:, :3])
    with ka.generation.decoding_scope(scope.cache, 3) as scope:
        last = model(text[:, 3:])
    assert np.allclose(np.concatenate([first, last], axis=1), model(text), atol=1e-6)
    ```
    """
    return scope.Decoding(cache, _check_index(index))


def _check_index(index):
    """Return an int where it is known, an int32 scalar where it is not."""
    try:
        index = operator.index(index)
    except TypeError:  # traced
        if "int" in str(getattr(index, "dtype", "")) and not len(index.shape):
            return ops.cast(index, "int32")
        raise ValueError(
            f"index={index!r}: expected how many tokens the cache holds, a whole number."
        ) from None
    return checks.check_whole_number("decoding_scope", "index", index, least=0)


def initial_cache(model, batch_size, max_length, *, memory_length=None, dtype=None, start=None):
    """An empty cache for `model`: tensors of zeros, by the names of the layers that need them.

    Attention keeps keys and values of `max_length` tokens, with as few heads as it has of them,
    latent attention its latent vectors, and attention through a causal window those of the window
    alone. Linear attention, causal convolutions and recurrent layers keep a state.

    Args:
        model: a functional `keras.Model` of which one input holds token ids.
        batch_size: int, B.
        max_length: int, how many tokens it has room for.
        memory_length: int, how many of the newest tokens attention keeps, or None for all: then a
            text may go on without end. The memory of Transformer-XL (Dai et al., 2019), without
            gradient and token by token; for relative positions, as there.
        dtype: `"int8"` keeps keys and values as whole numbers, with a scale for each token and
            head: a quarter of the memory, and a small error. None keeps them as they are.
        start: int (B,), where each row begins, for prompts that are padded on the left; or None.

    Returns:
        dict of tensors.

    Raises:
        ValueError: names a layer that cannot take tokens piece by piece, or positions that end
            before `max_length`.

    ```python
    import keras_attention as ka

    layer = ka.attention.MultiHeadAttention(
        4, 6, num_key_value_heads=2, mask=ka.masks.Causal() & ka.masks.Window(16)
    )
    import keras

    x = keras.Input((None, 24))
    cache = ka.generation.initial_cache(keras.Model(x, layer(x, x)), 3, 1000)
    assert {tuple(x.shape) for x in cache.values()} == {(3, 2, 15, 6)}
    ```
    """
    checks.check_whole_number("initial_cache", "batch_size", batch_size)
    checks.check_whole_number("initial_cache", "max_length", max_length)
    spec = trace_decoding(model, find_token_input(model))
    min_prompt_length(spec, max_length)
    if memory_length is None:
        check_max_length(spec, max_length)
    else:
        checks.check_whole_number("initial_cache", "memory_length", memory_length)
    cache = make_empty_cache(spec, batch_size, max_length, memory_length, dtype)
    if start is not None:
        cache["start"] = ops.cast(ops.convert_to_tensor(start), "int32")
    return cache


def find_token_input(model):
    """Return the name of the input that holds tokens: whole numbers, or else the first."""
    inputs = model.inputs
    whole = [x for x in inputs if "int" in str(x.dtype)]
    named = [x for x in whole if x.name == "target_ids"]
    return (named or whole or inputs)[0].name


def trace_decoding(model, tokens, encoder=None, join=None):
    """Return the `CacheSpec` of a functional model that decodes.

    Args:
        tokens: str, the name of the input that holds token ids.
        encoder: a functional model of the source that makes the other inputs, or None.
        join: function of the encoder's outputs and of the tokens, to the inputs of `model`.
    """
    _refuse_keras_layers(model)
    _check_token_input(model, tokens)
    if encoder is None:
        spec = CacheSpec(_unused_length(model.input))
        inputs = keras.tree.map_structure(
            lambda x: _symbol(x, spec.length if x.name == tokens else SOURCE_LENGTH), model.input
        )
        trace_cache(model, scope.Decoding(spec=spec), inputs)
    else:
        source = keras.tree.map_structure(lambda x: _symbol(x, SOURCE_LENGTH), encoder.input)
        encoded = encoder.compute_output_spec(source)
        spec = CacheSpec(_unused_length([model.input, encoded]))
        token_ids = next(x for x in model.inputs if x.name == tokens)
        target = _symbol(token_ids, spec.length)
        decoding = scope.Decoding(spec=spec)
        trace_cache(model, decoding, source, target, encoder=encoder, join=join)
    if spec.refusals:
        raise ValueError(f"{model.name} cannot decode token by token: {spec.refusals[0]}")
    if not spec.entries:
        raise ValueError(
            f"{model.name} keeps nothing of earlier tokens, so that every token would be chosen "
            "by the one before alone: it has no attention, recurrent or convolution layer of "
            "keras_attention."
        )
    return spec


def _unused_length(tensors):
    """Return a number of tokens unlike every other size, so that layers can tell tokens by it."""
    sizes = {axis for x in keras.tree.flatten(tensors) for axis in x.shape[1:]} | {SOURCE_LENGTH}
    return next(number for number in itertools.count(2) if number not in sizes)


def _symbol(tensor, length):
    if len(tensor.shape) == 2 and "float" in tensor.dtype:
        length = NUM_SAMPLES
    sizes = [length] + [SOURCE_LENGTH] * len(tensor.shape)
    axes = zip(tensor.shape[1:], sizes, strict=False)
    shape = [size if axis is None else axis for axis, size in axes]
    return keras.Input(batch_shape=(None, *shape), dtype=tensor.dtype, name=tensor.name)


def _refuse_keras_layers(model):
    """Refuses Keras's own layers that mix tokens: they use no cache and would be silently wrong."""
    kinds = (
        keras.layers.MultiHeadAttention,
        keras.layers.GroupQueryAttention,
        keras.layers.Attention,
        keras.layers.RNN,
        keras.layers.Bidirectional,
        keras.layers.Conv1D,
        keras.layers.DepthwiseConv1D,
        keras.layers.SeparableConv1D,
        keras.layers.GlobalAveragePooling1D,
        keras.layers.GlobalMaxPooling1D,
    )
    # Those in the model's graph: a layer of this package may hold others.
    for layer in _functional_layers(model):
        if isinstance(layer, kinds):
            raise ValueError(
                f"{layer.name} is Keras's {type(layer).__name__}, which mixes tokens and cannot "
                "take them one by one. Use the layer of keras_attention in its place."
            )


def _check_token_input(model, tokens):
    """Refuses models whose tokens have a fixed length."""
    given = next(x for x in model.inputs if x.name == tokens)
    if len(given.shape) < 2 or given.shape[1] is not None:
        raise ValueError(
            f"{model.name} takes {tokens} of shape {tuple(given.shape)}, and decoding gives it one "
            "token at a time: build it with keras.Input((None,), dtype='int32')."
        )


def _functional_layers(model):
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from _functional_layers(layer)


def min_prompt_length(spec, max_length):
    """The fewest tokens that a first call may have: more than 1 where some look ahead among them.

    A layer that looks ahead everywhere cannot decode: a ValueError names it.
    """
    return max((_min_first_call(n, m, max_length) for n, m in spec.masks.items()), default=1)


def _min_first_call(name, mask, max_length):
    """How many first tokens must come together: up to the last that is looked ahead to."""
    right = None if mask is None or mask.global_tokens() else mask.band()[1]
    if right is not None and right <= 0:
        return 1
    if mask is not None:
        length = min(max_length, LONGEST_PREFIX) + 1
        queries, keys = mask.to_numpy(length).nonzero()
        least = max(keys[keys > queries], default=0) + 1
        if least < length:
            return int(least)
    raise ValueError(
        f"{name} looks ahead (mask={mask}), so that earlier tokens change with every new one: it "
        "cannot decode token by token. Give it a mask that looks back, such as "
        "ka.masks.Causal(); of an encoder-decoder it is the decoder that decodes."
    )


def check_max_length(spec, max_length):
    """Refuses a cache that is longer than the positions of the model."""
    for what, longest in spec.max_lengths.items():
        if longest < max_length:
            raise ValueError(
                f"{max_length} places (max_length, or a prompt and its new tokens but for the "
                f"last) are more than {what} has room for. Choose at most {longest}, or build "
                "the model with more."
            )


def make_empty_cache(spec, batch_size, max_length, memory_length=None, dtype=None):
    """Zeros for all entries of a spec but those of a source, which its encoder makes."""
    return {
        name: ops.zeros((batch_size, *shape), dtype=kind)
        for name, (shape, kind) in cache_shapes(spec, max_length, memory_length, dtype).items()
    }


def cache_shapes(spec, max_length, memory_length=None, dtype=None):
    """{name in the cache: (shape without the batch, dtype)} of a spec, without its source."""
    if dtype not in (None, "int8"):
        raise ValueError(f"dtype={dtype!r}: a cache is kept as it is (None) or as 'int8'.")
    found = {}
    for (prefix, name), entry in spec.entries.items():
        if isinstance(entry, scope.State):
            found[f"{prefix}_{name}"] = entry.shape, entry.dtype
        elif isinstance(entry, scope.Sequence):
            bounds = [b for b in (entry.window, memory_length) if b is not None]
            rolls = memory_length is not None or min(bounds, default=max_length) < max_length
            length = min(bounds) if rolls else max_length
            key = f"{prefix}_recent_{name}" if rolls else f"{prefix}_{name}"
            shape = (*entry.shape[:-1], length, *entry.shape[-1:])
            found[key] = shape, entry.dtype
            if dtype == "int8" and entry.shape:
                found[key] = shape, "int8"
                found[f"{key}_scale"] = (*shape[:-1], 1), "float32"
    return found
