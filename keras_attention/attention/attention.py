"""Attention without projections."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention import incremental, masking, parts, recording
from keras_attention.attention.attend import attend


@keras.saving.register_keras_serializable(package="keras_attention")
class Attention(keras.layers.Layer):
    """Attention of queries over values as they come (Luong et al., 2015, section 3.1).

    Called as `keras.layers.Attention` and `keras.layers.AdditiveAttention` are; which of the two,
    or what else, is a matter of `score`. There are no projections but those of the score itself.

    Args:
        score: a part of `keras_attention.scores`, its name or its config. The default is Luong's
            dot product, as in Keras.
        normalizer: a part of `keras_attention.normalizers`, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None.
        position: a part of `keras_attention.positions` that rotates or biases, or None.
        dropout: float, the share of attention weights dropped in training.
        seed: int, for dropout.

    Call arguments:
        inputs: list [query (B, T, D), value (B, S, Dv), key (B, S, Dk)]; the key defaults to the
            value.
        mask: list [query mask (B, T), value mask (B, S)], bool, True = a token. Filled by Keras
            from implicit masks.
        return_attention_scores: bool, whether to return the weights (B, T, S) too.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        training: bool, whether dropout is active.

    A query that may attend to nothing gives zeros. The output (B, T, Dv) carries the query's mask.

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
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = parts.score(score, self.dtype_policy)
        self.normalizer = parts.normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = parts.position(position, self.dtype_policy)
        self.dropout, self.seed = dropout, seed
        self._dropout_layer = None
        if dropout:
            self._dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, input_shape):
        query, key = self._heads(input_shape)
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            self.score.build(query, key)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build(query)

    @staticmethod
    def _heads(input_shape):
        """The shapes of query and key as one head each, (B, T, 1, D)."""
        if not isinstance(input_shape[0], (list, tuple)) or len(input_shape) not in (2, 3):
            raise ValueError(
                f"Attention is called on a list [query, value] or [query, value, key]. "
                f"Received: inputs of shape {input_shape}"
            )
        query, key = input_shape[0], input_shape[-1]
        return tuple((*shape[:-1], 1, shape[-1]) for shape in (query, key))

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
    ):
        query, value, key = (ops.expand_dims(x, axis=2) for x in (inputs[0], inputs[1], inputs[-1]))
        query_mask, value_mask = mask[:2] if mask is not None else (None, None)
        structure = masking.structure(self, use_causal_mask)
        seen = incremental.recall(
            self,
            lambda positions: incremental.to_keep(self.position, key, value, positions),
            {"key": (1, inputs[-1].shape[-1]), "value": (1, inputs[1].shape[-1])},
            inputs[0],
            inputs[1],
            mask=structure,
            value_mask=value_mask,
        )
        where = {}
        if seen is not None:
            key, value, value_mask = seen.heads["key"], seen.heads["value"], seen.mask
            where = {**seen.where, "cached": True}
        dropout = self._dropout_layer if training else None
        wanted = return_attention_scores or recording.wanted(self)
        found = attend(
            query,
            key,
            value,
            score=self.score,
            normalizer=self.normalizer,
            mask=structure,
            position=self.position,
            attention_mask=masking.padding(value_mask=value_mask),
            query_mask=query_mask,
            dropout=dropout and (lambda weights: dropout(weights, training=True)),
            return_weights=wanted,
            **where,
        )
        output, weights = found if wanted else (found, None)
        recording.record(self, weights)
        # a reshape, not a squeeze, which LiteRT lacks for shapes that are not known
        output = ops.reshape(output, (-1, ops.shape(output)[1], inputs[1].shape[-1]))
        if not return_attention_scores:
            return output
        return output, ops.reshape(weights, (-1, *ops.shape(weights)[2:]))

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[0]

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:-1], input_shape[1][-1])

    def compute_output_spec(self, inputs, *args, return_attention_scores=False, **kwargs):
        shapes = [x.shape for x in inputs]
        output = keras.KerasTensor(self.compute_output_shape(shapes), self.compute_dtype)
        if not return_attention_scores:
            return output
        weights = (*shapes[0][:2], shapes[1][1])
        return output, keras.KerasTensor(weights, self.compute_dtype)

    def get_config(self):
        parts = ("score", "normalizer", "mask", "position")
        return {
            **super().get_config(),
            **{n: keras.saving.serialize_keras_object(getattr(self, n)) for n in parts},
            "dropout": self.dropout,
            "seed": self.seed,
        }
