"""Masks that come with the data: padding, packed documents."""

import functools

from keras import ops


def padding(value_mask):
    """Which keys are tokens and which are padding.

    Args:
        value_mask: bool (B, S), True = a token; or None.

    Returns:
        bool (B, 1, 1, S), True = may attend; None for None.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    assert ka.masks.padding(np.array([[True, True, False]])).shape == (1, 1, 1, 3)
    ```
    """
    if value_mask is None:
        return None
    value_mask = ops.cast(value_mask, "bool")
    return ops.expand_dims(ops.expand_dims(value_mask, axis=1), axis=1)


def same_segment(query_segments, key_segments=None):
    """Several documents packed in one row: each token sees its own document.

    Args:
        query_segments: int (B, T), the number of each token's document, 1, 2, ...; 0 is padding,
            which sees nothing and is seen by nothing. Or None.
        key_segments: int (B, S), the same for the keys; the queries' by default.

    Returns:
        bool (B, 1, T, S), True = may attend; None for None.

    Example:

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
    queries = ops.expand_dims(ops.expand_dims(query_segments, axis=1), axis=3)  # (B, 1, T, 1)
    keys = ops.expand_dims(ops.expand_dims(key_segments, axis=1), axis=1)  # (B, 1, 1, S)
    return ops.logical_and(ops.equal(queries, keys), ops.not_equal(keys, 0))


def all_of(*masks):
    """What all of `masks` allow, bool tensors that broadcast; None allows everything.

    Example:

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
