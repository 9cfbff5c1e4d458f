"""The encoder block: attention and a feed-forward network, each with a residual and norms."""

import keras
from keras import ops

from keras_attention.blocks.inner import inner_layer
from keras_attention.blocks.layer_scale import LayerScale

NORMS = ("pre", "post", "sandwich")
NORMALIZATIONS = {
    "layer_norm": keras.layers.LayerNormalization,
    "rms_norm": keras.layers.RMSNormalization,
}


@keras.saving.register_keras_serializable(package="keras_attention")
class EncoderBlock(keras.layers.Layer):
    """A Transformer encoder block (Vaswani et al., 2017, section 3.1).

    With f the attention or the feed-forward network, `norm` places the normalization:
    `"pre"` is `x + f(n(x))`, `"post"` the paper's `n(x + f(x))`, `"sandwich"` `x + n(f(n(x)))`
    (Ding et al., 2021). Stacks of pre-norm and sandwich blocks want a norm after the last.

    Args:
        attention: a layer called as `attention(query, value)`, such as
            `keras_attention.attention.MultiHeadAttention`.
        feed_forward: a layer called on one tensor, such as `FeedForward`.
        norm: `"pre"`, `"post"` or `"sandwich"`.
        normalization: `"layer_norm"` or `"rms_norm"` (Zhang and Sennrich, 2019).
        dropout: float, applied to what each branch adds.
        stochastic_depth: float, the share of examples in a batch that skip a branch in training
            (Huang et al., 2016).
        layer_scale: float, what LayerScale starts from, or None for none.
        epsilon: float, of the normalizations.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token; filled by Keras from the implicit mask.
        attention_mask: bool, True = may attend, (B, T, T) or as `attention` takes it.
        segment_ids: int (B, T), for packed documents; positions: int (T,) or (B, T). Both go to
            the attention as `segment_ids`, and as `query_positions` and `value_positions`.

    Returns (B, T, D), with the mask of the inputs.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8, position="rotary"),
        feed_forward=ka.blocks.FeedForward(64, activation="geglu"),
        norm="sandwich",
    )
    assert block(np.ones((2, 5, 32))).shape == (2, 5, 32)
    ```
    """

    def __init__(
        self,
        attention,
        feed_forward,
        norm="pre",
        normalization="layer_norm",
        dropout=0.0,
        stochastic_depth=0.0,
        layer_scale=None,
        epsilon=1e-6,
        **kwargs,
    ):
        if norm not in NORMS:
            raise ValueError(f"norm={norm!r}: expected one of {', '.join(NORMS)}.")
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"normalization={normalization!r}: expected one of {', '.join(NORMALIZATIONS)}."
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention = inner_layer("attention", attention)
        self.feed_forward = inner_layer("feed_forward", feed_forward)
        self.norm, self.normalization = norm, normalization
        self.dropout, self.stochastic_depth = dropout, stochastic_depth
        self.layer_scale, self.epsilon = layer_scale, epsilon
        self._attention_branch = self._branch("attention")
        self._feed_forward_branch = self._branch("feed_forward")

    def _branch(self, name):
        """What surrounds the attention or the feed-forward network: norms, scale, dropouts."""
        normalize, dtype = NORMALIZATIONS[self.normalization], self.dtype_policy
        places = {"pre": ["norm"], "post": ["norm"], "sandwich": ["norm", "post_norm"]}[self.norm]
        branch = {
            place: normalize(epsilon=self.epsilon, dtype=dtype, name=f"{name}_{place}")
            for place in places
        }
        if self.layer_scale is not None:
            branch["scale"] = LayerScale(self.layer_scale, dtype=dtype, name=f"{name}_scale")
        branch["dropout"] = keras.layers.Dropout(self.dropout, dtype=dtype)
        branch["skip"] = keras.layers.Dropout(
            self.stochastic_depth, noise_shape=(None, 1, 1), dtype=dtype
        )
        return branch

    def build(self, input_shape):
        if not self.attention.built:
            self.attention.build(input_shape, input_shape)
        if not self.feed_forward.built:
            self.feed_forward.build(input_shape)
        for branch in (self._attention_branch, self._feed_forward_branch):
            for layer in branch.values():
                if not layer.built:
                    layer.build(input_shape)

    def call(
        self,
        inputs,
        mask=None,
        attention_mask=None,
        segment_ids=None,
        positions=None,
        training=None,
    ):
        mask = getattr(inputs, "_keras_mask", None) if mask is None else mask
        given = {
            "query_mask": mask,
            "value_mask": mask,
            "attention_mask": attention_mask,
            "segment_ids": segment_ids,
            "query_positions": positions,
            "value_positions": positions,
        }
        given = {name: value for name, value in given.items() if value is not None}

        def attend(x):
            return self.attention(x, x, training=training, **given)

        def feed_forward(x):
            return self.feed_forward(x, training=training)

        x = self._residual(inputs, attend, self._attention_branch, training)
        return self._residual(x, feed_forward, self._feed_forward_branch, training)

    def _residual(self, x, function, branch, training):
        added = function(x if self.norm == "post" else branch["norm"](x))
        if self.norm == "sandwich":
            added = branch["post_norm"](added)
        if "scale" in branch:
            added = branch["scale"](added)
        added = branch["dropout"](added, training=training)
        added = branch["skip"](added, training=training)
        x = ops.add(x, added)
        return branch["norm"](x) if self.norm == "post" else x

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        names = ("norm", "normalization", "dropout", "stochastic_depth", "layer_scale", "epsilon")
        return {
            **super().get_config(),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "feed_forward": keras.saving.serialize_keras_object(self.feed_forward),
            **{name: getattr(self, name) for name in names},
        }
