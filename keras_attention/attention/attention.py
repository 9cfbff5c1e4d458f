"""Attention without projections."""

import keras
from keras import ops

from keras_attention.attention import axes, kv_cache
from keras_attention.attention.attend import AttendArguments
from keras_attention.attention.base import AttentionLayer
from keras_attention.attention.inputs import check_given, padding_mask
from keras_attention.core import scope
from keras_attention.core.shapes import prepend_batch


@keras.saving.register_keras_serializable(package="keras_attention")
class Attention(AttentionLayer):
    """Attention of queries over values, without projections (Luong et al., 2015, section 3.1).

    Called as `keras.layers.Attention` and `keras.layers.AdditiveAttention`, which differ in `score`
    alone. Only the score may have projections.

    Args:
        score: a part of `keras_attention.scores`, its name or its config. The default is Luong's
            dot product, as in Keras.
        kwargs: those of `AttentionLayer`.

    Call arguments:
        inputs: list [query (B, T, D), value (B, S, Dv), key (B, S, Dk)]; the key defaults to the
            value. All may have the same axes between B and T, which are then part of the batch.
        mask: list [query mask (B, T), value mask (B, S)], bool, True = a token. Filled by Keras
            from implicit masks.
        return_attention_scores: bool, whether to return the weights (B, T, S) too.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        training: bool, whether dropout is active.

    Whole numbers are cast to the layer's dtype. A query that may attend to nothing gives zeros. The
    output (B, T, Dv) carries the query's mask.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    query, value = np.random.rand(2, 5, 8), np.random.rand(2, 7, 12)
    layer = ka.attention.Attention(score="additive")  # Bahdanau's: widths may differ
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
        self.build_parts(*self._heads(input_shape))

    @staticmethod
    def _heads(input_shape):
        """The shapes of query and key as one head each, (B, T, 1, D)."""
        if not isinstance(input_shape[0], (list, tuple)) or len(input_shape) not in (2, 3):
            raise ValueError(
                f"Attention is called on a list [query, value] or [query, value, key]. "
                f"Received: inputs of shape {input_shape}"
            )
        front = [tuple(shape[:-2]) for shape in input_shape]
        if len(input_shape[0]) < 3 or any(map(_differ, front, front[1:])):
            raise ValueError(
                "Attention is called on (batch, ..., length, features), query, value and key with "
                f"the same axes in front of the length. Received: inputs of shape {input_shape}"
            )
        query, key = input_shape[0], input_shape[-1]
        return tuple((shape[0], shape[-2], 1, shape[-1]) for shape in (query, key))

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
    ):
        like, dims = inputs[0], (len(inputs[0].shape) - 2,)
        query_mask, value_mask = mask[:2] if mask is not None else (None, None)
        self._check_masks(inputs, mask)
        inputs = [axes.to_sequences(self._as_float(x), dims) for x in inputs]  # (B, T, D)
        query_mask, value_mask = (
            x if x is None else axes.to_sequences(ops.convert_to_tensor(x), dims, features=0)
            for x in (query_mask, value_mask)
        )
        query, value, key = (ops.expand_dims(x, axis=2) for x in (inputs[0], inputs[1], inputs[-1]))
        part = self.mask_part(use_causal_mask)
        cached = kv_cache.extend_cache(
            self,
            lambda positions: kv_cache.rotate_and_transpose(
                self.position, {"key": key, "value": value}, positions
            ),
            {"key": (1, inputs[-1].shape[-1]), "value": (1, inputs[1].shape[-1])},
            like,
            inputs[1],
            mask=part,
            value_mask=value_mask,
        )
        positions = {}
        if cached is not None:
            key, value, value_mask = cached.heads["key"], cached.heads["value"], cached.mask
            positions = cached.positions
        call = AttendArguments(
            mask=part,
            attention_mask=padding_mask(value_mask=value_mask),
            query_mask=query_mask,
            cached=cached is not None,
            training=training,
            return_weights=return_attention_scores,
            implementation=self.implementation if cached is None else None,
            **positions,
        )
        output, weights = self.attend(query, key, value, call)
        scope.record_weights(self, weights)
        # a reshape, not a squeeze, which LiteRT lacks for shapes that are not known
        output = ops.reshape(
            output, prepend_batch(output, ops.shape(output)[1], inputs[1].shape[-1])
        )
        output = axes.from_sequences(output, like, dims)
        if not return_attention_scores:
            return output
        shape = prepend_batch(weights, *ops.shape(weights)[2:])
        if len(like.shape) > 3:
            shape = (*ops.shape(like)[:-2], *shape[1:])
        return output, ops.reshape(weights, shape)

    def _check_masks(self, inputs, mask):
        query, value = (x.shape for x in inputs[:2])
        padding = (
            {} if mask is None else dict(zip(("query_mask", "value_mask"), mask, strict=False))
        )
        check_given(self.name, query, value, (len(query) - 2,), **padding)

    def _as_float(self, x):
        """`x`, of whole numbers as floats, which Keras casts by itself."""
        return x if keras.backend.is_float_dtype(x.dtype) else ops.cast(x, self.compute_dtype)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[0]

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:-1], input_shape[1][-1])

    def compute_output_spec(
        self, inputs, mask=None, training=None, return_attention_scores=False, **kwargs
    ):
        self._check_masks(inputs, mask)
        shapes = [x.shape for x in inputs]
        output = keras.KerasTensor(self.compute_output_shape(shapes), self.compute_dtype)
        if not return_attention_scores:
            return output
        weights = (*shapes[0][:-1], shapes[1][-2])
        return output, keras.KerasTensor(weights, self.compute_dtype)


def _differ(shape, other):
    """Whether two shapes cannot be the same."""
    if len(shape) != len(other):
        return True
    return any(a != b for a, b in zip(shape, other, strict=True) if None not in (a, b))
