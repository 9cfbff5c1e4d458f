"""`explain`: which kernel an attention layer uses for a call, and why."""

import keras
import numpy as np

from keras_attention.attention.base import AttentionLayer
from keras_attention.attention.kernels import choose
from keras_attention.attention.visibility import Visibility


def explain(
    layer,
    query_length,
    key_length=None,
    *,
    training=False,
    use_causal_mask=False,
    return_attention_scores=False,
    positions=False,
    padding=False,
    attention_mask=False,
):
    """Return which kernel an attention layer uses for a call without a cache, and why.

    Args:
        layer: an attention layer, such as `MultiHeadAttention`. For a block, pass its `attention`.
        query_length: int, T, or None if it is dynamic in a traced graph.
        key_length: int, S. None means self-attention, with S = T.
        training, use_causal_mask, return_attention_scores: bool, as in the call.
        positions: bool, whether positions are passed to the call.
        padding: bool, whether queries and keys have padding masks.
        attention_mask: bool, whether an `attention_mask` or `segment_ids` are passed to the call.

    Returns:
        A `Choice` with the name of the kernel and the reason. The same function chooses the kernel
        in a call.

    Raises:
        ValueError: `layer` is not an attention layer of this package.

    ```python
    import keras_attention as ka

    layer = ka.attention.MultiHeadAttention(8, 64, mask=ka.masks.Window(128))
    assert ka.attention.explain(layer, 4096).implementation == "banded"
    print(ka.attention.explain(layer, 100))  # dense: 100 queries and 100 keys are few
    ```
    """
    if not isinstance(layer, AttentionLayer):
        raise ValueError(
            f"{layer!r} has no implementation to choose: expected an attention layer such as "
            "MultiHeadAttention. For a block, give its `attention`."
        )
    lengths = query_length, query_length if key_length is None else key_length
    query, key = (
        keras.KerasTensor((None, length, layer.num_heads, layer.head_size), layer.compute_dtype)
        for length in lengths
    )
    query_mask = keras.KerasTensor((None, query_length), "bool") if padding else None
    key_mask = query_mask
    if padding and key_length is not None:
        key_mask = keras.KerasTensor((None, key_length), "bool")
    visibility = Visibility(
        layer.mask_part(use_causal_mask),
        attention_mask=np.ones((1, 1, 1, 1), "bool") if attention_mask else None,
        query_mask=query_mask,
        key_mask=key_mask,
        query_positions=keras.KerasTensor((query_length,), "int32") if positions else None,
    )
    if layer.padding == "right":
        visibility = visibility.with_lengths_of_masks()
    return choose(
        query,
        key,
        layer.make_equation(training),
        visibility,
        return_attention_scores and not layer.names_kernel(layer.implementation),
        layer.implementation,
        layer._flash_attention,
    )
