"""Blocks with half steps of feed-forward around attention: macaron and Conformer."""

import functools

import keras

from keras_attention.blocks.convolution_module import ConvolutionModule
from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import call_with_mask, revive_layer


@keras.saving.register_keras_serializable(package="keras_attention")
class MacaronBlock(EncoderBlock):
    """Feed-forward, attention, feed-forward (Lu et al., 2019).

    The two feed-forward networks add half of their outputs: with `norm="pre"`,
    `x + ½ first(n(x))`, `x + attention(n(x))`, `x + ½ feed_forward(n(x))`.

    Args:
        first_feed_forward: a layer called on one tensor.
        attention, feed_forward: layers, as in `EncoderBlock`.
        norm, normalization, dropout, stochastic_depth, layer_scale, epsilon, remat: as in
            `EncoderBlock`.

    Call arguments and masking: as in `EncoderBlock`.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.MacaronBlock(
        first_feed_forward=ka.blocks.FeedForward(64),
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8),
        feed_forward=ka.blocks.FeedForward(64),
    )
    assert block(np.ones((2, 5, 32))).shape == (2, 5, 32)
    ```
    """

    branches = {
        "_first_branch": "first_feed_forward",
        "_attention_branch": "attention",
        "_feed_forward_branch": "feed_forward",
    }
    inner_layers = ("first_feed_forward", "feed_forward")

    def __init__(self, first_feed_forward, attention, feed_forward, **kwargs):
        super().__init__(attention, feed_forward, **kwargs)
        self.first_feed_forward = revive_layer("first_feed_forward", first_feed_forward)

    def _add_branches(self, stream, attend, mask, training):
        x = self._half_step(stream, self.first_feed_forward, self._first_branch, mask, training)
        x = self._add_branch(x, attend, self._attention_branch, training)
        return self._half_step(x, self.feed_forward, self._feed_forward_branch, mask, training)

    def _half_step(self, stream, layer, branch, mask, training):
        feed = functools.partial(call_with_mask, layer, mask=mask, training=training)
        return self._add_branch(stream, feed, branch, training, step=0.5)


@keras.saving.register_keras_serializable(package="keras_attention")
class ConformerBlock(MacaronBlock):
    """Half feed-forward, attention, convolution, half feed-forward, norm (Gulati et al., 2020).

    Section 2.4, equation 1: `x + ½ first(n(x))`, `x + attention(n(x))`, `x + convolution(n(x))`,
    `n(x + ½ feed_forward(n(x)))`. A stack needs no norm after its last block.

    Args:
        first_feed_forward, attention, feed_forward: layers, as in `MacaronBlock`; the paper's
            feed-forward is `FeedForward(4 * D, activation="silu")`, its attention relative.
        convolution: a layer called on one tensor; None is `ConvolutionModule()`.
        normalization, dropout, stochastic_depth, layer_scale, epsilon, remat: as in `EncoderBlock`.

    Call arguments and masking: as in `EncoderBlock`. Padding changes no token.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.ConformerBlock(
        first_feed_forward=ka.blocks.FeedForward(64, activation="silu"),
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8, position="rotary"),
        feed_forward=ka.blocks.FeedForward(64, activation="silu"),
        convolution=ka.blocks.ConvolutionModule(kernel_size=7),
    )
    assert block(np.ones((2, 20, 32))).shape == (2, 20, 32)
    ```
    """

    branches = MacaronBlock.branches | {"_convolution_branch": "convolution"}
    inner_layers = (*MacaronBlock.inner_layers, "convolution")

    def __init__(self, first_feed_forward, attention, feed_forward, convolution=None, **kwargs):
        if "norm" in kwargs:
            raise ValueError(
                f"norm={kwargs['norm']!r}: the norms of a ConformerBlock are where the paper has "
                "them. Leave it out; MacaronBlock takes one."
            )
        super().__init__(first_feed_forward, attention, feed_forward, **kwargs)
        if convolution is None:
            convolution = ConvolutionModule(dtype=self.dtype_policy, name="convolution")
        self.convolution = revive_layer("convolution", convolution)
        self._final_norm = self._make_normalization("final_norm")

    def build(self, input_shape):
        super().build(input_shape)
        if not self._final_norm.built:
            self._final_norm.build(input_shape)

    def _add_branches(self, stream, attend, mask, training):
        convolve = functools.partial(call_with_mask, self.convolution, mask=mask, training=training)
        x = self._half_step(stream, self.first_feed_forward, self._first_branch, mask, training)
        x = self._add_branch(x, attend, self._attention_branch, training)
        x = self._add_branch(x, convolve, self._convolution_branch, training)
        x = self._half_step(x, self.feed_forward, self._feed_forward_branch, mask, training)
        return self._final_norm(x)

    def get_config(self):
        config = super().get_config()
        del config["norm"]
        return config
