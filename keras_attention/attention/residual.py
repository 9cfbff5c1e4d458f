"""Attention whose scores are added to those of the layer below."""

import keras

from keras_attention.attention.multi_head import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_attention")
class ResidualAttention(MultiHeadAttention):
    """Multi-head attention whose scores are added to those of the layer below.

    RealFormer (He et al., 2021): `s_l = score(q, k) + s_(l-1)`, then
    `weights = normalize(s_l + bias, mask)`. The scores travel as tensors from layer to layer, in a
    functional model like any other. They are raw: without the position's bias, which each layer
    adds for itself and which would else grow with depth, and before the mask.

    Args: those of `MultiHeadAttention`. Layers that hand on scores have the same `num_heads`.

    Call arguments, besides those of `MultiHeadAttention`:
        previous_scores: (B, N, T, S), the raw scores of the layer below; None in the first layer.
        return_raw_scores: bool, whether to return the scores (B, N, T, S) too, as the last output.

    With several `attention_axes` scores have the shape of the weights. Those of memory slots are
    not handed on: each layer has slots of its own.

    Example:

    ```python
    import keras
    import keras_attention as ka

    x = y = keras.Input((None, 24))
    scores = None
    for _ in range(3):
        attention = ka.attention.ResidualAttention(num_heads=4, key_dim=6)
        added, scores = attention(y, y, previous_scores=scores, return_raw_scores=True)
        y = keras.layers.LayerNormalization()(y + added)
    assert keras.Model(x, y).output_shape == (None, None, 24)
    ```
    """

    hands_on_scores = True
