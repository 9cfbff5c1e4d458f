"""`explain`: which kernel an attention layer computes with, and why."""

import keras

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
):
    """Return which kernel an attention layer computes with, and why.

    Args:
        layer: `Attention`, `MultiHeadAttention` or a layer made of it; of a block, its `attention`.
        query_length, key_length: int, T and S; None means that it is not known when traced. S
            defaults to T.
        training, use_causal_mask, return_attention_scores: as in a call of the layer.
        positions: bool, whether the call gives positions.

    Returns:
        `Choice`, from the function that chooses for a call.

    Example:

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
            "MultiHeadAttention; of a block, its `attention`."
        )
    lengths = query_length, query_length if key_length is None else key_length
    query, key = (
        keras.KerasTensor((None, length, layer.num_heads, layer.key_dim), layer.compute_dtype)
        for length in lengths
    )
    query_positions = keras.KerasTensor((query_length,), "int32") if positions else None
    return choose(
        query,
        key,
        layer.make_equation(training),
        Visibility(layer.mask_part(use_causal_mask), query_positions=query_positions),
        return_attention_scores and not layer.names_kernel(layer.implementation),
        layer.implementation,
        layer._flash_attention,
    )
