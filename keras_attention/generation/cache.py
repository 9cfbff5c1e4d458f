"""Caches: what a model keeps of the tokens it has seen, as a flat dict of tensors."""

import operator

from keras import ops

from keras_attention import checks, scope
from keras_attention.generation import plan as plans


def decoding_scope(cache, index):
    """A scope in which a functional model takes new tokens alone, one or many.

    The layers of the model find in the cache what they kept of the tokens before, and leave there
    what the next call needs. Positions count on from `index`. It works in eager code, in traced
    functions and in exported ones. Layers of others know nothing of it: they must take each token
    for itself, which `generate` and the exports try out, and this does not.

    Args:
        cache: dict of tensors, from `initial_cache` or from the scope of the call before.
        index: int or integer scalar, how many tokens the cache holds already.

    Returns:
        A context manager; its `cache` is the new one after the model has been called. Open a new
        scope for each call.

    Example:

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
    return scope.Decoding(cache, _index(index))


def _index(index):
    """An int where it is known, an int32 scalar where it is not."""
    try:
        index = operator.index(index)
    except TypeError:  # traced
        if "int" in str(getattr(index, "dtype", "")) and not len(index.shape):
            return ops.cast(index, "int32")
        raise ValueError(
            f"index={index!r}: expected how many tokens the cache holds, a whole number."
        ) from None
    return checks.whole_number("decoding_scope", "index", index, least=0)


def initial_cache(model, batch_size, max_length, *, memory_length=None, dtype=None, start=None):
    """An empty cache for `model`: zeros, by the names of the layers that keep something.

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

    Example:

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
    checks.whole_number("initial_cache", "batch_size", batch_size)
    checks.whole_number("initial_cache", "max_length", max_length)
    plan = plans.of(model, tokens_of(model))
    plan.least_prompt(max_length)
    if memory_length is None:
        plan.check_length(max_length)
    else:
        checks.whole_number("initial_cache", "memory_length", memory_length)
    cache = make(plan, batch_size, max_length, memory_length, dtype)
    if start is not None:
        cache["start"] = ops.cast(ops.convert_to_tensor(start), "int32")
    return cache


def tokens_of(model):
    """The name of the input that holds tokens: whole numbers, or else the first."""
    inputs = model.inputs
    whole = [x for x in inputs if "int" in str(x.dtype)]
    named = [x for x in whole if x.name == "target_ids"]
    return (named or whole or inputs)[0].name


def make(plan, batch_size, max_length, memory_length=None, dtype=None):
    """The tensors of a plan, but for those of a source, which comes later."""
    return {
        name: ops.zeros((batch_size, *shape), dtype=kind)
        for name, (shape, kind) in layout(plan, max_length, memory_length, dtype).items()
    }


def layout(plan, max_length, memory_length=None, dtype=None):
    """{name in the cache: (shape without the batch, dtype)} of a plan, without its source."""
    if dtype not in (None, "int8"):
        raise ValueError(f"dtype={dtype!r}: a cache is kept as it is (None) or as 'int8'.")
    found = {}
    for (prefix, name), entry in plan.entries.items():
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
