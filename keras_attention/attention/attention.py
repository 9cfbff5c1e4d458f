"""Attention without projections."""

import keras
from keras import ops

from keras_attention.attention.base import AttentionLayer
from keras_attention.attention.inputs import check_call
from keras_attention.core.shapes import prepend_batch


@keras.saving.register_keras_serializable(package="keras_attention")
class Attention(AttentionLayer):
    """Attention of queries to values, without projections (Luong et al., 2015, section 3.1).

    `weights = normalize(score(q, k), mask)` and `output = weights · v`. The layer is called like
    `keras.layers.Attention` and `keras.layers.AdditiveAttention`, which it replaces with
    `score="dot"` and `score="additive"`.

    Args:
        score: a score of `keras_attention.scores`, its name or its config. The default is Luong's
            dot product, as in `keras.layers.Attention`.
        normalizer: a normalizer of `keras_attention.normalizers`, its name or its config.
        mask: a mask of `keras_attention.masks`, its name, its config, or None.
        position: an encoding of `keras_attention.positions` that rotates or biases, or None.
        dropout: float, the fraction of attention weights set to 0 in training.
        seed: int, the seed of dropout, or None.
        kwargs: other arguments of `AttentionLayer`, such as `implementation`.

    Call arguments:
        inputs: list [query (B, T, D), value (B, S, Dv)] or [query, value, key (B, S, Dk)]. The key
            defaults to the value. All may have more axes between B and T or S, which are then part
            of the batch and must have the same sizes in all inputs.
        mask: list [query mask (B, T), value mask (B, S)], bool, True = a token. Keras fills it from
            the implicit masks of the inputs.
        return_attention_scores: bool, whether to return the weights (B, T, S) too.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        training: bool, whether dropout is active.

    Integer inputs are cast to the layer's compute dtype. The output (B, T, Dv) carries the query's
    mask. For a query that sees no key it is zero.

    ```python
    import numpy as np
    import keras_attention as ka

    query, value = np.random.rand(2, 5, 8), np.random.rand(2, 7, 12)
    layer = ka.attention.Attention(score="additive")  # Bahdanau's score allows different widths
    output, weights = layer([query, value], return_attention_scores=True)
    assert output.shape == (2, 5, 12) and weights.shape == (2, 5, 7)
    ```
    """

    def __init__(
        self,
        score="dot",
        normalizer="softmax",
        mask=None,
        position=None,
        dropout=0.0,
        seed=None,
        **kwargs,
    ):
        parts = {"score": score, "normalizer": normalizer, "mask": mask, "position": position}
        super().__init__(**parts, dropout=dropout, seed=seed, **kwargs)

    def build(self, input_shape):
        if not isinstance(input_shape[0], (list, tuple)) or len(input_shape) not in (2, 3):
            raise ValueError(
                f"Attention is called on a list [query, value] or [query, value, key]. "
                f"Received: inputs of shape {input_shape}"
            )
        front = [tuple(shape[:-2]) for shape in input_shape]
        sizes = [set(axis) - {None} for axis in zip(*front, strict=False)]
        if len(front[0]) < 1 or len({*map(len, front)}) > 1 or any(len(x) > 1 for x in sizes):
            raise ValueError(
                "Attention is called on (batch, ..., length, features), query, value and key with "
                f"the same axes before the length. Received: inputs of shape {input_shape}"
            )
        query, value, key = input_shape[0], input_shape[1], input_shape[-1]
        self._widths = {"key": key[-1], "value": value[-1]}
        self.build_parts(*((shape[0], shape[-2], 1, shape[-1]) for shape in (query, key)))

    def call(
        self, inputs, mask=None, training=None, return_attention_scores=False, use_causal_mask=False
    ):
        query_mask, value_mask = (None, None) if mask is None else mask[:2]
        floats = keras.backend.is_float_dtype  # Keras casts float inputs, but not integers
        query, value, *key = (
            x if floats(x.dtype) else ops.cast(x, self.compute_dtype) for x in inputs
        )
        outputs = super().call(
            query,
            value,
            *key,
            query_mask=query_mask,
            value_mask=value_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        if not return_attention_scores:
            return outputs
        output, weights = outputs  # (B, ..., 1, T, S)
        lengths = ops.shape(weights)[-2:]
        shape = prepend_batch(weights, *lengths)
        if len(query.shape) > 3:
            shape = (*ops.shape(query)[:-2], *lengths)
        return output, ops.reshape(weights, shape)

    def attended_axes(self, query):
        return (len(query.shape) - 2,)

    def project_query(self, query):
        return ops.expand_dims(query, axis=2)

    def project_key_value(self, value, key, visibility):
        return {"key": ops.expand_dims(key, axis=2), "value": ops.expand_dims(value, axis=2)}

    @property
    def cache_shapes(self):
        return {name: (1, width) for name, width in self._widths.items()}

    def project_output(self, output, query):
        # not a squeeze, which LiteRT does not support for dynamic shapes
        shape = prepend_batch(output, ops.shape(output)[1], output.shape[3])
        return ops.reshape(output, shape)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[0]

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:-1], input_shape[1][-1])

    def compute_output_spec(
        self, inputs, mask=None, training=None, return_attention_scores=False, **kwargs
    ):
        query, value = inputs[0].shape, inputs[1].shape
        padding = dict(zip(("query_mask", "value_mask"), mask or (), strict=False))
        check_call(self.name, query, value, padding, (len(query) - 2,))
        output = keras.KerasTensor((*query[:-1], value[-1]), self.compute_dtype)
        if not return_attention_scores:
            return output
        return output, keras.KerasTensor((*query[:-1], value[-2]), self.compute_dtype)
