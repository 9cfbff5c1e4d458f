"""Variants of `EncoderBlock` with a different order of layers: parallel, macaron and Conformer."""

import functools

import keras
from keras import ops

from keras_attention.blocks.convolution_module import ConvolutionModule
from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import call_with_mask, revive_layer


@keras.saving.register_keras_serializable(package="keras_attention")
class ParallelBlock(EncoderBlock):
    """A Transformer block with attention and feed-forward network in parallel, on the same input.

    With `norm="pre"` it computes `x + attention(n(x)) + feed_forward(n(x))`, where attention and
    feed-forward network share the norm n. GPT-J (Wang and Komatsuzaki, 2021), PaLM (Chowdhery et
    al., 2022, section 2) and ViT-22B (Dehghani et al., 2023, section 2) use such blocks.

    Args:
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`.
        feed_forward: a layer called on one tensor, such as `FeedForward`.
        norm, normalization, epsilon: where norms are, such as `"pre"`, which norm it is, such as
            `"layer_norm"`, and a small number that it adds before it divides. `EncoderBlock` lists
            the choices.
        dropout, stochastic_depth, layer_scale, remat: the dropout rate for the output of a branch,
            the fraction of examples that skip a branch in training, the initial value of a learned
            scale of a branch (None for no scale), and whether training recomputes activations to
            save memory.

    Call arguments:
        inputs: (B, T, D), or with `norm="resi_dual"` a pair of such tensors.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.
        attention_mask: bool (B, T, T), True = query may attend to key.
        segment_ids, positions: int (B, T), passed to the attention: the number of each token's
            document, if a row holds several, and its position.

    Returns (B, T, D), or with `norm="resi_dual"` a pair of such tensors, with the mask of the
    inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.ParallelBlock(
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8, mask="causal"),
        feed_forward=ka.blocks.FeedForward(64, activation="swiglu"),
    )
    assert block(np.ones((2, 5, 32))).shape == (2, 5, 32)
    ```
    """

    branches = {"_both_branch": "both"}

    def _add_branches(self, stream, attend, mask, training):
        feed = functools.partial(call_with_mask, self.feed_forward, mask=mask, training=training)
        return self._add_branch(
            stream, lambda x: ops.add(attend(x), feed(x)), self._both_branch, training
        )


@keras.saving.register_keras_serializable(package="keras_attention")
class MacaronBlock(EncoderBlock):
    """A Transformer block with feed-forward networks before and after attention (Lu et al., 2019).

    The output of each feed-forward network is multiplied by ½. With `norm="pre"` the block computes
    `x + ½ first_feed_forward(n(x))`, then `x + attention(n(x))`, then `x + ½ feed_forward(n(x))`,
    where n is a norm.

    Args:
        first_feed_forward: a layer called on one tensor, before the attention.
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`.
        feed_forward: a layer called on one tensor, after the attention, such as `FeedForward`.
        norm, normalization, epsilon: where norms are, such as `"pre"`, which norm it is, such as
            `"layer_norm"`, and a small number that it adds before it divides. `EncoderBlock` lists
            the choices.
        dropout, stochastic_depth, layer_scale, remat: the dropout rate for the output of a branch,
            the fraction of examples that skip a branch in training, the initial value of a learned
            scale of a branch (None for no scale), and whether training recomputes activations to
            save memory.

    Call arguments:
        inputs: (B, T, D), or with `norm="resi_dual"` a pair of such tensors.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.
        attention_mask: bool (B, T, T), True = query may attend to key.
        segment_ids, positions: int (B, T), passed to the attention: the number of each token's
            document, if a row holds several, and its position.

    Returns (B, T, D), or with `norm="resi_dual"` a pair of such tensors, with the mask of the
    inputs.

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
    """A `MacaronBlock` with a convolution after the attention (Gulati et al., 2020, section 2.4).

    It computes `x + ½ first_feed_forward(n(x))`, then `x + attention(n(x))`, then
    `x + convolution(n(x))`, then `n(x + ½ feed_forward(n(x)))` (equation 1), where n is a norm. A
    block ends with a norm, so a stack needs none after the last block.

    Args:
        first_feed_forward, feed_forward: layers called on one tensor, before and after the
            attention. The paper uses `FeedForward(4 * D, activation="silu")`.
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`. The
            paper encodes relative positions.
        convolution: a layer called on one tensor. None makes a `ConvolutionModule()`.
        normalization, epsilon: which norm n is, such as `"layer_norm"`, and a small number that it
            adds before it divides.
        dropout, stochastic_depth, layer_scale, remat: the dropout rate for the output of a branch,
            the fraction of examples that skip a branch in training, the initial value of a learned
            scale of a branch (None for no scale), and whether training recomputes activations to
            save memory.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.
        attention_mask: bool (B, T, T), True = query may attend to key.
        segment_ids, positions: int (B, T), passed to the attention: the number of each token's
            document, if a row holds several, and its position.

    Returns (B, T, D), with the mask of the inputs. Padding does not change the output for tokens.

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
                f"norm={kwargs['norm']!r}: the norms of a ConformerBlock have fixed places, as in "
                "the paper. Leave norm out, or use a MacaronBlock."
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
