"""`DecoderBlock`: self-attention, attention to a source, and a feed-forward network."""

import functools

import keras

from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import (
    call_attention,
    call_with_mask,
    find_mask,
    revive_layer,
    serialize_inner,
)
from keras_attention.blocks.rematerialization import rematerializes


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderBlock(EncoderBlock):
    """A Transformer block that also attends to a source (Vaswani et al., 2017, section 3.1).

    With `norm="pre"` it computes `x + attention(n(x))`, then `x + cross_attention(n(x), encoded)`,
    then `x + feed_forward(n(x))`, where n is a norm, with its own weights each time. The block
    itself does not hide later tokens: use an `attention` with `mask="causal"`. For a decoder
    without a source, use `EncoderBlock`.

    Args:
        attention: a layer for self-attention, called as `attention(query, value)`, such as
            `MultiHeadAttention`.
        cross_attention: a layer for attention to the source, called as
            `cross_attention(query, encoded)`.
        feed_forward: a layer called on one tensor, such as `FeedForward`.
        norm, normalization, epsilon: where norms are, such as `"pre"`, which norm it is, such as
            `"layer_norm"`, and a small number that it adds before it divides. `EncoderBlock` lists
            the choices and the defaults. A `DeepNorm` for this block is made with
            `num_branches=3`, as in `norm=DeepNorm(num_layers=12, num_branches=3)`.
        dropout, stochastic_depth, layer_scale, remat: the dropout rate for the output of a branch,
            the fraction of examples that skip a branch in training, the initial value of a learned
            scale of a branch (None for no scale), and whether training recomputes activations to
            save memory.

    Call arguments:
        inputs: (B, T, D), or with `norm="resi_dual"` a pair of such tensors.
        encoded: (B, S, E), the encoded source.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask of `inputs`.
        encoded_mask: bool (B, S), True = a token. Keras fills it from the implicit mask of
            `encoded`.
        attention_mask: bool (B, T, T), True = query may attend to key, or another shape that
            `attention` accepts.
        cross_attention_mask: bool (B, T, S), True = query may attend to key, or another shape that
            `cross_attention` accepts.
        segment_ids, encoded_segment_ids: int (B, T) and (B, S), if a row holds several documents,
            the number of each token's document. The cross-attention uses them only if both are
            given.
        positions, encoded_positions: int (T,) or (B, T), and int (S,) or (B, S), the positions of
            the tokens. None is 0, 1, 2, ... The cross-attention gets them as `query_positions` and
            `value_positions`. A layer without the argument `query_positions` is called without it.

    Returns (B, T, D), or with `norm="resi_dual"` a pair of such tensors, with the mask of the
    inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.DecoderBlock(
        attention=ka.attention.MultiHeadAttention(4, 8, mask="causal", position="rotary"),
        cross_attention=ka.attention.MultiHeadAttention(4, 8),
        feed_forward=ka.blocks.FeedForward(64),
    )
    target, source = np.ones((2, 5, 32)), np.ones((2, 7, 16))
    assert block(target, source).shape == (2, 5, 32)
    ```
    """

    branches = {
        "_attention_branch": "attention",
        "_cross_attention_branch": "cross_attention",
        "_feed_forward_branch": "feed_forward",
    }

    def __init__(self, attention, cross_attention, feed_forward, **kwargs):
        super().__init__(attention, feed_forward, **kwargs)
        self.cross_attention = revive_layer("cross_attention", cross_attention)

    def build(self, inputs_shape, encoded_shape):
        shape = self._stream_shape(inputs_shape)
        self._build_layers(shape, [(self.attention, shape), (self.cross_attention, encoded_shape)])

    @rematerializes
    def call(
        self,
        inputs,
        encoded,
        mask=None,
        encoded_mask=None,
        attention_mask=None,
        cross_attention_mask=None,
        segment_ids=None,
        encoded_segment_ids=None,
        positions=None,
        encoded_positions=None,
        training=None,
    ):
        if segment_ids is None and encoded_segment_ids is not None:
            raise ValueError(
                f"{self.name} got encoded_segment_ids without segment_ids. Both are needed to find "
                "the tokens that belong together. Give both, or neither."
            )
        mask, encoded_mask = find_mask(inputs, mask), find_mask(encoded, encoded_mask)
        attend = functools.partial(
            call_attention,
            self.attention,
            training=training,
            query_mask=mask,
            attention_mask=attention_mask,
            segment_ids=segment_ids,
            query_positions=positions,
        )
        attend_to_source = functools.partial(
            call_attention,
            self.cross_attention,
            training=training,
            value=encoded,
            optional=["query_positions"],
            query_mask=mask,
            value_mask=encoded_mask,
            attention_mask=cross_attention_mask,
            segment_ids=None if encoded_segment_ids is None else segment_ids,
            value_segment_ids=encoded_segment_ids,
            query_positions=positions,
            value_positions=encoded_positions,
        )
        feed = functools.partial(call_with_mask, self.feed_forward, mask=mask, training=training)
        x = self._add_branch(self.norm.start(inputs), attend, self._attention_branch, training)
        x = self._add_branch(x, attend_to_source, self._cross_attention_branch, training)
        return self._add_branch(x, feed, self._feed_forward_branch, training)

    def compute_output_shape(self, inputs_shape, encoded_shape):
        return super().compute_output_shape(inputs_shape)

    def get_config(self):
        return {**super().get_config(), "cross_attention": serialize_inner(self.cross_attention)}
