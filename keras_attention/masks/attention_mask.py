"""Attention masks as bool tensors: from mask parts, from padding, and for packed documents."""

import functools

from keras import ops

from keras_attention.masks.base import Full, expand_keys, expand_queries


def materialize(mask, query_positions, key_positions):
    """Evaluate a mask for given positions and return a bool tensor, True = may attend.

    Args:
        mask: a `Mask`, or None if every query may attend to every key.
        query_positions: int (T,) or (B, T), usually 0 to T - 1. Other positions are needed for
            decoding with a cache and for packed documents.
        key_positions: int (S,) or (B, S), the positions of the keys.

    Returns:
        bool (1 or B, 1, T, S), or None if `mask` is None or `Full`.

    ```python
    import numpy as np
    import keras_attention as ka

    two_new_tokens = ka.masks.materialize(ka.masks.Causal(), [3, 4], range(5))
    assert np.array_equal(two_new_tokens[0, 0], [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    ```
    """
    if mask is None or isinstance(mask, Full):
        return None
    i, j = expand_queries(query_positions), expand_keys(key_positions)
    rows = {x.shape[0] for x in (i, j) if isinstance(x.shape[0], int)} - {1}
    if len(rows) > 1:
        raise ValueError(
            f"Positions of queries have {i.shape[0]} rows, and those of keys {j.shape[0]}. Give "
            "both for the same batch."
        )
    allowed = mask.allows(i, j)
    if _is_one(allowed, 2, unlike=i) or _is_one(allowed, 3, unlike=j):
        allowed = ops.logical_and(allowed, Full().allows(i, j))  # Prefix ignores i
    return allowed


def _is_one(allowed, axis, unlike):
    return allowed.shape[axis] == 1 != unlike.shape[axis]


def token_mask(ids, padding_id=0):
    """Return the padding mask of token ids (B, T): bool (B, T), True = a token, not padding.

    Pass the result to a layer as `value_mask`. The result is None if `padding_id` is None.

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.array_equal(ka.masks.token_mask(np.array([[5, 0, 7]])), [[True, False, True]])
    assert ka.masks.token_mask(np.array([[5, 0, 7]]), padding_id=None) is None
    ```
    """
    return None if padding_id is None else ops.not_equal(ids, padding_id)


def padding(value_mask):
    """Return the attention mask that hides padding from all queries: bool (B, 1, 1, S).

    `value_mask` is bool (B, S), True = a token. The result is None if `value_mask` is None.

    ```python
    import numpy as np
    import keras_attention as ka

    assert ka.masks.padding(np.array([[True, True, False]])).shape == (1, 1, 1, 3)
    ```
    """
    if value_mask is None:
        return None
    value_mask = ops.cast(value_mask, "bool")
    _check_rank_two("padding", "value_mask", value_mask)
    return ops.expand_dims(ops.expand_dims(value_mask, axis=1), axis=1)


def same_segment(query_segments, key_segments=None):
    """Return the mask for several documents packed in one row: bool (B, 1, T, S).

    Each token sees only the tokens of its own document.

    Args:
        query_segments: int (B, T), the number (1, 2, ...) of the document that each query token
            belongs to. Padding has 0: it sees no token, and no token sees it. If `query_segments`
            is None, the result is None.
        key_segments: int (B, S), the same for key tokens. Defaults to `query_segments`.

    ```python
    import numpy as np
    import keras_attention as ka

    visible = ka.masks.same_segment(np.array([[1, 1, 2, 0]]))
    assert np.array_equal(visible[0, 0], [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    ```
    """
    if query_segments is None:
        if key_segments is not None:
            raise ValueError("same_segment: key_segments came without query_segments. Give both.")
        return None
    key_segments = query_segments if key_segments is None else key_segments
    query_segments, key_segments = (ops.cast(s, "int32") for s in (query_segments, key_segments))
    _check_rank_two("same_segment", "query_segments", query_segments)
    _check_rank_two("same_segment", "key_segments", key_segments)
    _check_batches("same_segment", query_segments=query_segments, key_segments=key_segments)
    queries = ops.expand_dims(ops.expand_dims(query_segments, axis=1), axis=3)  # (B, 1, T, 1)
    keys = ops.expand_dims(ops.expand_dims(key_segments, axis=1), axis=1)  # (B, 1, 1, S)
    return ops.logical_and(ops.equal(queries, keys), ops.not_equal(keys, 0))


def positions_in_segments(segments):
    """Return the position of each token in its own document, for documents packed in one row.

    `segments` is int (B, T), the number (1, 2, ...) of each token's document, or 0 for padding. The
    result is int32 (B, T), with 0 for padding. Pass it to a layer as positions, together with the
    segments. Positions and masks such as `Global` then count from the first token of each document.

    ```python
    import numpy as np
    import keras_attention as ka

    positions = ka.masks.positions_in_segments(np.array([[1, 1, 1, 2, 2, 0]]))
    assert np.array_equal(positions, [[0, 1, 2, 0, 1, 0]])
    ```
    """
    segments = ops.cast(segments, "int32")
    _check_rank_two("positions_in_segments", "segments", segments)
    length = ops.shape(segments)[1]
    if length is None:  # a Keras tensor. In LiteRT a cumsum would need five axes.
        index = ops.cumsum(ops.ones_like(segments), axis=1)
    else:
        index = ops.expand_dims(ops.arange(length, dtype="int32"), axis=0)
    earlier = ops.expand_dims(index, axis=2) > ops.expand_dims(index, axis=1)  # (1 or B, T, T)
    same = ops.equal(ops.expand_dims(segments, axis=2), ops.expand_dims(segments, axis=1))
    same = ops.logical_and(same, ops.expand_dims(ops.not_equal(segments, 0), axis=2))
    return ops.sum(ops.cast(ops.logical_and(earlier, same), "int32"), axis=2)


def prefix_lengths(lengths, key_positions):
    """Return the mask of `Prefix` with a different length for each row: bool (B, 1, 1, S).

    The prompts of a prefix language model (Raffel et al., 2020, section 3.2.1) may differ in
    length. Combine this mask with the causal one by `any_of`, and pass the result as
    `attention_mask`. The layer itself must not be causal, because its causal mask would hide the
    later tokens of the prompt.

    Args:
        lengths: int (B,), the length of the prefix that all queries of a row see.
        key_positions: int (S,) or (B, S), the positions of the keys.

    ```python
    import numpy as np
    import keras_attention as ka

    positions = range(4)
    causal = ka.masks.materialize(ka.masks.Causal(), positions, positions)
    prefix = ka.masks.prefix_lengths(np.array([1, 3]), positions)
    visible = ka.masks.any_of(causal, prefix)  # (2, 1, 4, 4)
    assert np.array_equal(visible[0, 0, 0], [1, 0, 0, 0])
    assert np.array_equal(visible[1, 0, 0], [1, 1, 1, 0])

    x = np.random.rand(2, 4, 6).astype("float32")
    layer = ka.attention.MultiHeadAttention(num_heads=2, key_dim=3)
    assert layer(x, x, attention_mask=visible).shape == (2, 4, 6)
    ```
    """
    lengths = ops.cast(lengths, "int32")
    if len(lengths.shape) != 1:
        raise ValueError(
            f"prefix_lengths: lengths must be of shape (batch,), but received shape "
            f"{tuple(lengths.shape)}. Give one length for each row."
        )
    positions = expand_keys(key_positions)  # (1 or B, 1, 1, S)
    _check_batches("prefix_lengths", lengths=lengths, key_positions=positions)
    lengths = ops.expand_dims(ops.expand_dims(ops.expand_dims(lengths, axis=1), axis=1), axis=1)
    return positions < lengths


def all_of(*masks):
    """Return the intersection of attention masks: bool tensors whose shapes broadcast.

    A key is visible if all masks allow it. None allows everything, so it is skipped. The result is
    None if all masks are None.

    ```python
    import numpy as np
    import keras_attention as ka

    padding = ka.masks.padding(np.array([[True, True, False]]))
    causal = ka.masks.materialize(ka.masks.Causal(), range(3), range(3))
    assert ka.masks.all_of(padding, None, causal).shape == (1, 1, 3, 3)
    assert ka.masks.all_of(None, None) is None
    ```
    """
    masks = [mask for mask in masks if mask is not None]
    return functools.reduce(ops.logical_and, masks) if masks else None


def any_of(*masks):
    """Return the union of attention masks: bool tensors whose shapes broadcast.

    A key is visible if any mask allows it. None allows everything, so the result is None if any
    mask is None. Raise a ValueError if `masks` is empty.

    ```python
    import numpy as np
    import keras_attention as ka

    causal = ka.masks.materialize(ka.masks.Causal(), range(3), range(3))
    prompt = ka.masks.prefix_lengths(np.array([1, 2]), range(3))
    assert ka.masks.any_of(causal, prompt).shape == (2, 1, 3, 3)
    assert ka.masks.any_of(causal, None) is None
    ```
    """
    if not masks:
        raise ValueError("any_of() got no mask. Give at least one.")
    return None if any(mask is None for mask in masks) else functools.reduce(ops.logical_or, masks)


def _check_rank_two(caller, name, x):
    if len(x.shape) != 2:
        raise ValueError(
            f"{caller}: {name} must be of shape (batch, length), but received {tuple(x.shape)}. "
            "Give one value for each token."
        )


def _check_batches(caller, **tensors):
    """Raise a ValueError if the batch sizes of `tensors` differ, unless one of them is 1.

    The message begins with `caller`, the name of a function. Tensors may be None.
    """
    sizes = {x.shape[0] for x in tensors.values() if isinstance(x.shape[0], int)} - {1}
    if len(sizes) > 1:
        rows = " and ".join(f"{name} with {x.shape[0]} rows" for name, x in tensors.items())
        raise ValueError(f"{caller}: received {rows}. Give both for the same batch.")
