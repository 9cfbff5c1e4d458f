"""Multi-head attention that adds the scores of the layer below to its own."""

import keras

from keras_attention.attention.multi_head import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_attention")
class ResidualAttention(MultiHeadAttention):
    """Multi-head attention that adds the scores of the layer below (RealFormer, He et al., 2021).

    `s_l = score(q, k) + s_(l-1)` and `weights = normalize(s_l + bias, mask)` in layer l, where
    `normalize` is softmax by default and `bias` comes from the position encoding. On request, each
    layer returns its raw scores s_l, which are then passed to the next layer. Raw scores include
    neither masks nor the bias, which would accumulate over the layers.

    Args: those of `MultiHeadAttention`. All layers must have the same `num_heads`.

    Call arguments, in addition to those of `MultiHeadAttention`:
        previous_scores: (B, N, T, S), the raw scores of the layer below. None in the first layer.
        return_raw_scores: bool, whether to also return the raw scores (B, N, T, S), as the last
            output.

    With several `attention_axes`, raw scores have the shape of the attention weights that
    `MultiHeadAttention` returns. The S keys never include memory slots.

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

    adds_previous_scores = True
