"""The cache of a model that generates: which tensors a model needs to store, and an empty cache."""

import itertools
import operator

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache

SOURCE_LENGTH = 3  # length of the traced source
NUM_SAMPLES = 8192  # length of a traced waveform: several frames at any sampling rate
LONGEST_PREFIX = 4096  # maximum number of tokens that may attend to one another


def decoding_scope(cache, index):
    """Return a context manager for calls of a functional model on new tokens, with a cache.

    Use it to write your own generation loop. Inside it, layers of this package read earlier tokens
    from the cache and add the new tokens to it. Positions start at `index`. The context manager
    works in eager code, in traced functions and in exports. Layers of other packages do not use the
    cache, so they must process each token independently. `generate` and the exports check this, but
    this function does not.

    Args:
        cache: dict of tensors, from `initial_cache` or from the previous scope.
        index: int or integer scalar tensor, the number of tokens in the cache. If the new tokens do
            not fit, an int raises a ValueError, and a tensor in a TensorFlow graph an
            InvalidArgumentError. XLA, JAX's compiled functions and exported files cannot raise
            errors. They overwrite the last tokens.

    Returns:
        A context manager. After the model was called, its attribute `cache` is the new cache. Make
        a new context manager for each call of the model.

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
    """Return `index` as an int, or as an int32 scalar tensor if it is traced."""
    try:
        index = operator.index(index)
    except TypeError:  # traced
        if "int" in str(getattr(index, "dtype", "")) and not len(index.shape):
            return ops.cast(index, "int32")
        raise ValueError(
            f"index={index!r}: expected the number of tokens in the cache, a whole number."
        ) from None
    return checks.check_whole_number("decoding_scope", "index", index, least=0)


def initial_cache(model, batch_size, max_length, *, memory_length=None, dtype=None, start=None):
    """Return an empty cache for `decoding_scope`, a dict of zeros.

    Attention layers store the keys and values of `max_length` tokens, or only of a window if the
    mask has one. Latent attention stores the compressed vectors from which it computes keys and
    values. Linear attention, causal convolutions and recurrent layers store a state of constant
    size.

    Args:
        model: a functional `keras.Model` with one input of token ids.
        batch_size: int B, number of rows.
        max_length: int, the maximum number of tokens in the cache.
        memory_length: int, the number of the most recent tokens that attention keeps, to generate
            text of unlimited length. The model needs relative positions. This is the memory of
            Transformer-XL (Dai et al., 2019), token by token and without gradients. None keeps all
            tokens.
        dtype: `"int8"` stores keys and values as integers with a scale for each token and head,
            which takes a quarter of the memory of float32 and adds a small error. None keeps the
            model's dtype.
        start: int (B,), the number of padding tokens at the beginning of each row. None if prompts
            have no padding.

    Returns:
        A dict of tensors whose keys begin with layer names.

    Raises:
        ValueError: a layer cannot read tokens step by step, or the model has fewer than
            `max_length` positions.

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
    """Return the name of the input with token ids: `"target_ids"`, or else the first integer input.

    A model without integer inputs has the first input.
    """
    inputs = model.inputs
    whole = [x for x in inputs if "int" in str(x.dtype)]
    named = [x for x in whole if x.name == "target_ids"]
    return (named or whole or inputs)[0].name


def trace_decoding(model, tokens, encoder=None, join=None):
    """Return a `CacheSpec`, the list of tensors that the layers of a model need in a cache.

    The model is called on symbolic tensors. If a layer cannot read tokens one by one, a ValueError
    is raised.

    Args:
        model: functional model from token ids (and encoder outputs) to logits.
        tokens: str, the name of the input with token ids.
        encoder: functional model that encodes the source, or None for a decoder without one.
        join: function that combines the outputs of `encoder` with the tokens, `join(outputs,
            tokens)`, and returns the inputs of `model`. It must be given with an encoder.
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
            f"{model.name} has no attention, recurrent or convolution layer of keras_attention, so "
            "each new token would depend only on the previous one. Add a layer that reads earlier "
            "tokens."
        )
    return spec


def _unused_length(tensors):
    """Return a length that no axis of `tensors` has, so layers can recognize the token axis."""
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
    """Raise an error for Keras layers that mix tokens, because they would ignore the cache."""
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
    # Inner layers are not checked: layers of this package may contain such Keras layers.
    for layer in _functional_layers(model):
        if isinstance(layer, kinds):
            raise ValueError(
                f"{layer.name} is Keras's {type(layer).__name__}, which mixes tokens and has no "
                "cache. Replace it with a layer of keras_attention."
            )


def _check_token_input(model, tokens):
    """Raise an error if the input of token ids, called `tokens`, has a fixed length."""
    x = next(x for x in model.inputs if x.name == tokens)
    if len(x.shape) < 2 or x.shape[1] is not None:
        raise ValueError(
            f"{model.name} takes {tokens} of shape {tuple(x.shape)}. Decoding passes one token at "
            "a time. Build the model with keras.Input((None,), dtype='int32')."
        )


def _functional_layers(model):
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from _functional_layers(layer)


def min_prompt_length(spec, max_length):
    """Return the minimum number of tokens that a model must read in its first call.

    `spec` is the model's `CacheSpec`, which has the masks of its layers, and `max_length` the
    number of tokens in the cache. The number is above 1 if the first tokens attend to one another
    (a prefix). If all tokens of a layer attend to later tokens, a ValueError is raised.
    """
    return max((_min_first_call(n, m, max_length) for n, m in spec.masks.items()), default=1)


def _min_first_call(name, mask, max_length):
    """Return how many tokens a layer with this `mask` must read at least in its first call.

    `name` is the name of the layer, for the message. `max_length` is the number of tokens in the
    cache.
    """
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
        f"{name} attends to later tokens (mask={mask}), so every new token would change earlier "
        "ones. To generate, use a mask that hides later tokens, such as ka.masks.Causal(). In an "
        "encoder-decoder this applies to the decoder."
    )


def check_max_length(spec, max_length):
    """Raise an error if a layer has fewer than `max_length` positions.

    `spec` is the model's `CacheSpec`, which lists the layers.
    """
    for name, longest in spec.max_lengths.items():
        if longest < max_length:
            raise ValueError(
                f"{max_length} tokens (max_length, or a prompt and its new tokens except the last) "
                f"are more than the positions of {name}. Choose at most {longest} tokens, or build "
                "the model with more positions."
            )


def make_empty_cache(spec, batch_size, max_length, memory_length=None, dtype=None):
    """Return an empty cache for a `CacheSpec`, without entries that depend on a source.

    `spec` is the `CacheSpec`, which lists the tensors that the layers of a model store.
    `initial_cache` explains the other arguments.
    """
    return {
        name: ops.zeros((batch_size, *shape), dtype=kind)
        for name, (shape, kind) in cache_shapes(spec, max_length, memory_length, dtype).items()
    }


def cache_shapes(spec, max_length, memory_length=None, dtype=None):
    """Return a dict {key: (shape without the batch axis, dtype)} for an empty cache.

    `make_empty_cache` explains the arguments.
    """
    if dtype not in (None, "int8"):
        raise ValueError(f"dtype={dtype!r}: expected 'int8', or None for the dtype of the model.")
    shapes = {}
    for (prefix, name), entry in spec.entries.items():
        if isinstance(entry, scope.State):
            shapes[f"{prefix}_{name}"] = entry.shape, entry.dtype
        elif isinstance(entry, scope.Sequence):
            bounds = [b for b in (entry.window, memory_length) if b is not None]
            rolls = memory_length is not None or min(bounds, default=max_length) < max_length
            length = min(bounds) if rolls else max_length
            key = f"{prefix}_recent_{name}" if rolls else f"{prefix}_{name}"
            shape = (*entry.shape[:-1], length, *entry.shape[-1:])
            shapes[key] = shape, entry.dtype
            if dtype == "int8" and entry.shape:
                shapes[key] = shape, "int8"
                shapes[f"{key}_scale"] = (*shape[:-1], 1), "float32"
    return shapes
