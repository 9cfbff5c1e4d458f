"""Attention whose scores are added to those of the layer below."""

import keras
from keras import ops

from keras_attention.attention import axes
from keras_attention.attention.base import AttentionLayer, extends_call
from keras_attention.attention.multi_head import MultiHeadAttention
from keras_attention.core import scope
from keras_attention.scores.base import Score, score_pairs


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

    _dense_only = True

    @extends_call(AttentionLayer.call)
    def call(
        self,
        query,
        value,
        *args,
        previous_scores=None,
        return_raw_scores=False,
        score=None,
        **kwargs,
    ):
        attended = self.attended_axes(query)
        if scope.current(scope.Decoding) is None:  # a cache makes scores of all tokens so far
            shape = axes.weights_shape(self.num_heads, query.shape, value.shape, attended)
            _check_previous(previous_scores, shape)
        if previous_scores is not None:
            previous_scores = axes.weights_to_sequences(previous_scores, query, value, attended)
        score = _Residual(self.score if score is None else score, previous_scores)
        outputs = super().call(query, value, *args, score=score, **kwargs)
        if not return_raw_scores:
            return outputs
        raw = axes.weights_from_sequences(score.raw, query, value, attended)
        return (*outputs, raw) if isinstance(outputs, tuple) else (outputs, raw)

    def compute_output_spec(
        self,
        query,
        value,
        *args,
        previous_scores=None,
        return_raw_scores=False,
        **kwargs,
    ):
        outputs = super().compute_output_spec(query, value, *args, **kwargs)
        attended = self.attended_axes(query)
        shape = axes.weights_shape(self.num_heads, query.shape, value.shape, attended)
        _check_previous(previous_scores, shape)
        if not return_raw_scores:
            return outputs
        raw = keras.KerasTensor(shape, self.compute_dtype)
        return (*outputs, raw) if isinstance(outputs, tuple) else (outputs, raw)


class _Residual(Score):
    """A score plus the scores of the layer below; keeps their sum as `raw`."""

    def __init__(self, score, previous):
        self.score, self.previous, self.raw = score, previous, None

    def __call__(self, query, key):
        self.raw = score_pairs(self.score, query, key)
        if self.previous is not None:
            self.raw = ops.add(self.raw, ops.cast(self.previous, self.raw.dtype))
        return self.raw


def _check_previous(scores, shape):
    """Refuses scores that cannot be those of a layer with scores of this shape."""
    if scores is None:
        return
    same = len(scores.shape) == len(shape) and all(
        given is None or expected is None or given == expected
        for given, expected in zip(scores.shape, shape, strict=True)
    )
    if not same:
        raise ValueError(
            f"previous_scores has shape {tuple(scores.shape)}, this layer's scores {tuple(shape)}. "
            "Hand on the raw scores of a layer with the same number of heads, on the same queries "
            "and values."
        )
