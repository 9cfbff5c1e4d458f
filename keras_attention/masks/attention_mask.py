"""Attention masks as bool tensors: masks at given positions, padding, packed documents."""

import functools

from keras import ops

from keras_attention.masks.base import Full, expand_keys, expand_queries


def materialize(mask, query_positions, key_positions):
    """Applies `mask` to positions.

    Args:
        mask: a mask or None.
        query_positions: int (T,) or (B, T). key_positions: int (S,) or (B, S). Where the tokens
            are: `arange`, unless there is an offset, a cache, or packed documents.

    Returns:
        bool (1 or B, 1, T, S), True = may attend, or None if everything may.

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
            f"Positions of queries are of {i.shape[0]} rows and those of keys of {j.shape[0]}. "
            "Give both for the same batch."
        )
    allowed = mask.allows(i, j)
    if _is_one(allowed, 2, unlike=i) or _is_one(allowed, 3, unlike=j):
        allowed = ops.logical_and(allowed, Full().allows(i, j))  # Prefix ignores i
    return allowed


def _is_one(allowed, axis, unlike):
    return allowed.shape[axis] == 1 != unlike.shape[axis]


def token_mask(ids, padding_id=0):
    """Return which ids are tokens, and not padding: what layers take as `value_mask`.

    Args:
        ids: int (B, T). padding_id: int, or None where every id is a token.

    Returns:
        bool (B, T), True = a token; None where all are.

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.array_equal(ka.masks.token_mask(np.array([[5, 0, 7]])), [[True, False, True]])
    assert ka.masks.token_mask(np.array([[5, 0, 7]]), padding_id=None) is None
    ```
    """
    return None if padding_id is None else ops.not_equal(ids, padding_id)


def padding(value_mask):
    """Return the padding mask: keys that are tokens are visible.

    Args:
        value_mask: bool (B, S), True = a token; or None.

    Returns:
        bool (B, 1, 1, S), True = may attend; None for None.

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
    """Return the mask of documents packed in one row: each token sees its own document.

    Args:
        query_segments: int (B, T), the number of each token's document, 1, 2, ...; 0 is padding,
            which neither sees nor is seen. Or None.
        key_segments: int (B, S), the same for the keys; by default those of the queries.

    Returns:
        bool (B, 1, T, S), True = may attend; None for None.

    ```python
    import numpy as np
    import keras_attention as ka

    visible = ka.masks.same_segment(np.array([[1, 1, 2, 0]]))
    assert np.array_equal(visible[0, 0], [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    ```
    """
    if query_segments is None:
        if key_segments is not None:
            raise ValueError("same_segment: key_segments came without query_segments; give both.")
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

    Passed to a layer as positions, together with the segments, they make every document read as if
    it were alone: position embeddings and masks such as `Global` count from its first token.
    Without the segments, tokens of different documents would share a position.

    Args:
        segments: int (B, T), the number of each token's document, 1, 2, ...; 0 is padding.

    Returns:
        int32 (B, T): 0, 1, 2, ... in each document, 0 for padding. Costs T · T comparisons, as
        `same_segment` does.

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
    if length is None:  # of a Keras tensor; LiteRT would need five axes for the cumsum
        index = ops.cumsum(ops.ones_like(segments), axis=1)
    else:
        index = ops.expand_dims(ops.arange(length, dtype="int32"), axis=0)
    earlier = ops.expand_dims(index, axis=2) > ops.expand_dims(index, axis=1)  # (1 or B, T, T)
    same = ops.equal(ops.expand_dims(segments, axis=2), ops.expand_dims(segments, axis=1))
    same = ops.logical_and(same, ops.expand_dims(ops.not_equal(segments, 0), axis=2))
    return ops.sum(ops.cast(ops.logical_and(earlier, same), "int32"), axis=2)


def prefix_lengths(lengths, key_positions):
    """Return the mask of `Prefix` with a length for each row of the batch.

    For a prefix language model (Raffel et al., 2020, section 3.2.1) whose prompts differ in
    length, combine it with the causal mask by `any_of` and pass the result as `attention_mask` to a
    layer without a causal mask of its own: the layer's mask and the call's must both allow a pair.

    Args:
        lengths: int (B,), how many tokens of each row all queries see.
        key_positions: int (S,) or (B, S), where the keys are.

    Returns:
        bool (B, 1, 1, S), True = may attend.

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
            f"prefix_lengths: lengths must be of shape (batch,), one for each row; received "
            f"{tuple(lengths.shape)}."
        )
    positions = expand_keys(key_positions)  # (1 or B, 1, 1, S)
    _check_batches("prefix_lengths", lengths=lengths, key_positions=positions)
    lengths = ops.expand_dims(ops.expand_dims(ops.expand_dims(lengths, axis=1), axis=1), axis=1)
    return positions < lengths


def all_of(*masks):
    """Return the intersection of bool tensors that broadcast; None allows everything.

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
    """Return the union of bool tensors that broadcast; None allows everything.

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
        raise ValueError("any_of() got no mask; give at least one.")
    return None if any(mask is None for mask in masks) else functools.reduce(ops.logical_or, masks)


def _check_rank_two(owner, name, x):
    if len(x.shape) != 2:
        raise ValueError(
            f"{owner}: {name} must be of shape (batch, length), one for each token; received "
            f"{tuple(x.shape)}."
        )


def _check_batches(owner, **tensors):
    """Refuses two tensors of different batch sizes, unless one of them has batch size 1."""
    (name, x), (other, y) = tensors.items()
    rows, others = x.shape[0], y.shape[0]
    if isinstance(rows, int) and isinstance(others, int) and 1 not in (rows, others):
        if rows != others:
            raise ValueError(
                f"{owner}: {name} are of {rows} rows and {other} of {others}. Give both for the "
                "same batch."
            )
