"""`AttentionPooling`: one vector for a sequence, by attention and a feed-forward network."""

import keras
from keras import ops

from keras_attention.blocks.inner_layers import (
    build_attention,
    call_attention,
    revive_layer,
    serialize_inner,
)
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks, shapes
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class AttentionPooling(OwnArguments, keras.layers.Layer):
    """Pools a sequence to one vector, by attention from a learned query and a feed-forward network.

    The layer computes `y = attention(query, x)` and then `y + feed_forward(n(y))`, where n is a
    norm. This is the *multihead attention pooling* (MAP) of vision transformers (Zhai et al., 2022,
    section 3.2, and Zhai et al., 2023, *SigLIP*), after Lee et al. (2019, section 3.2).
    `Pooling("attention")` is simpler: it has no projections and no feed-forward network.

    Args:
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`. If
            there is a mask, its call must accept `value_mask`.
        feed_forward: a layer called on one tensor, such as `FeedForward`.
        num_prefix_tokens: int, number of tokens at the beginning that are ignored.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`, the norm n.
        epsilon: float, a small number that n adds before it divides.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.

    Returns (B, D).

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.AttentionPooling(
        ka.attention.MultiHeadAttention(num_heads=2, key_dim=8), ka.blocks.FeedForward(32)
    )
    assert layer(np.ones((3, 5, 16))).shape == (3, 16)
    ```
    """

    own_arguments = ("num_prefix_tokens", "normalization", "epsilon")
    weight_axes = {"query": ("rows", "rows", "embed")}

    def __init__(
        self,
        attention,
        feed_forward,
        num_prefix_tokens=0,
        normalization="layer_norm",
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.attention = revive_layer("attention", attention)
        self.feed_forward = revive_layer("feed_forward", feed_forward)
        self.num_prefix_tokens = num_prefix_tokens
        checks.check_whole_numbers(self, "num_prefix_tokens", least=0)
        self.normalization, self.epsilon = normalization, epsilon
        checks.check_choice(self, "normalization", NORMALIZATIONS)
        make = NORMALIZATIONS[normalization]
        self._norm = make(epsilon=epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, input_shape):
        width = input_shape[-1]
        self.query = self.add_weight(
            shape=(1, 1, width), initializer="glorot_uniform", name="query"
        )
        pooled = (input_shape[0], 1, width)
        if not self.attention.built:
            build_attention(self.attention, pooled, input_shape)
        for layer in (self.feed_forward, self._norm):
            if not layer.built:
                layer.build(pooled)

    def call(self, inputs, mask=None, training=None):
        if self.num_prefix_tokens:
            inputs = inputs[:, self.num_prefix_tokens :]
            mask = mask if mask is None else mask[:, self.num_prefix_tokens :]
        query = shapes.tile(ops.cast(self.query, inputs.dtype), (ops.shape(inputs)[0], 1, 1))
        x = call_attention(self.attention, query, training, value=inputs, value_mask=mask)
        x = ops.add(x, self.feed_forward(self._norm(x), training=training))  # (B, 1, D)
        return ops.reshape(x, (-1, inputs.shape[-1]))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "attention": serialize_inner(self.attention),
            "feed_forward": serialize_inner(self.feed_forward),
        }
