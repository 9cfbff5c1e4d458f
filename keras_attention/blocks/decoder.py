"""The decoder block: self-attention, attention to a source, and a feed-forward network."""

import functools

import keras

from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import (
    call_attention,
    call_with_mask,
    revive_layer,
    serialize_inner,
)
from keras_attention.blocks.rematerialization import rematerializes


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderBlock(EncoderBlock):
    """A Transformer decoder block beside an encoder (Vaswani et al., 2017, section 3.1).

    With `norm="pre"`, `x + attention(n(x))`, `x + cross_attention(n(x), encoded)`,
    `x + feed_forward(n(x))`. The block adds no mask of its own: give `attention` the mask
    `"causal"`. A decoder without a source is made of `EncoderBlock`.

    Args:
        attention: a layer called as `attention(query, value)` on one tensor, as in `EncoderBlock`.
        cross_attention: a layer called as `cross_attention(query, value)`, the value the source.
        feed_forward: a layer called on one tensor.
        norm, normalization, dropout, stochastic_depth, layer_scale, epsilon, remat: as in
            `EncoderBlock`; `DeepNorm` needs `num_branches=3`.

    Call arguments:
        inputs: (B, T, D); with `norm="resi_dual"` also a pair of them.
        encoded: (B, S, E), the source.
        mask: bool (B, T), encoded_mask: bool (B, S), True = a token; filled from the implicit
            masks of the two.
        attention_mask: bool, True = may attend, (B, T, T) or as `attention` takes it.
        cross_attention_mask: bool, True = may attend, (B, T, S) or as `cross_attention` takes it.
        segment_ids: int (B, T), encoded_segment_ids: int (B, S), for packed documents: they go to
            the attention, and both to the cross-attention if both are given.
        positions: int (T,) or (B, T), encoded_positions: int (S,) or (B, S): where the tokens are.
            `positions` are left out for a cross-attention that takes none.

    Returns (B, T, D), or a pair of them, with the mask of the inputs.

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
                f"{self.name} was given encoded_segment_ids without segment_ids: it takes both to "
                "say which tokens belong together. Give both, or neither."
            )
        mask = self._padding_mask(inputs, mask)
        attend = self._self_attention(mask, attention_mask, segment_ids, positions, training)
        attend_to_source = functools.partial(
            call_attention,
            self.cross_attention,
            training=training,
            value=encoded,
            optional=["query_positions"],
            query_mask=mask,
            value_mask=self._padding_mask(encoded, encoded_mask),
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
