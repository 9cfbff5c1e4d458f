"""`TransformerDecoder`: a stack of Transformer blocks that also attend to a source."""

import dataclasses
import functools

from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import DecoderBlock, FeedForward
from keras_attention.blocks.inner_layers import copy_part, revive_layer
from keras_attention.core import checks
from keras_attention.models.transformer import TransformerEncoder


@dataclasses.dataclass(frozen=True)
class TransformerDecoder(TransformerEncoder):
    """A stack of decoder blocks, which attend to an encoded source (Vaswani et al., 2017).

    Each call makes new blocks. For a decoder without a source, use a `TransformerEncoder` with
    `causal=True`.

    Args:
        num_layers, attention, feed_forward, ...: number of blocks, the layers that each block
            copies, and the other arguments of `TransformerEncoder`.
        cross_attention: a layer for the attention to the source. Each block gets its own copy.
        causal: bool, whether the self-attention hides later tokens. If False, all vectors of x
            attend to one another, as in DETR.

    Call arguments:
        x: (B, T, D).
        encoded: (B, S, E), the output of the encoder, of any width E.
        each_layer: bool, whether to return a list with the output of each block.
        segment_ids, positions: int32 (B, T), if a row holds several documents: the number of each
            token's document, and the token's position in the document.
        encoded_segment_ids, encoded_positions: int32 (B, S), the same for the source.

    Returns (B, T, D).

    ```python
    import keras
    import keras_attention as ka

    decoder = ka.models.TransformerDecoder(
        num_layers=2,
        attention=ka.attention.MultiHeadAttention(2, 8, position="rotary"),
        cross_attention=ka.attention.MultiHeadAttention(2, 8),
        feed_forward=ka.blocks.FeedForward(32),
        norm="post",
    )
    x, encoded = keras.Input((None, 16)), keras.Input((None, 24))
    assert decoder(x, encoded).shape == (None, None, 16)
    ```
    """

    cross_attention: object = dataclasses.field(kw_only=True)
    causal: bool = dataclasses.field(default=True, kw_only=True)

    _num_branches = 3  # attention to the source, too

    @classmethod
    def of_size(
        cls,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        *,
        dropout=0.0,
        attention_dropout=0.0,
        activation="gelu",
        use_bias=True,
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        cross_position=None,
        norm="pre",
        normalization="layer_norm",
        epsilon=1e-6,
        causal=True,
        name="block",
    ):
        """Make a stack with `MultiHeadAttention` and `FeedForward` from sizes.

        Args:
            num_layers, num_heads, ...: sizes and parts of the blocks, explained in
                `TransformerEncoder.of_size`. `mask` and `position` apply to the self-attention.
            cross_position: a position for the attention to the source, which rotates queries and
                keys or biases scores, or None.
            causal: bool, whether the self-attention hides later tokens.
        """
        key_dim = checks.divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
        make_attention = functools.partial(
            MultiHeadAttention,
            num_heads,
            key_dim,
            dropout=attention_dropout,
            use_bias=use_bias,
            score=score,
            normalizer=normalizer,
        )
        return cls(
            num_layers,
            attention=make_attention(mask=mask, position=position),
            cross_attention=make_attention(position=cross_position),
            feed_forward=FeedForward(intermediate_dim, activation, dropout, use_bias),
            norm=norm,
            normalization=normalization,
            epsilon=epsilon,
            dropout=dropout,
            hidden_dim=hidden_dim,
            causal=causal,
            name=name,
        )

    def __post_init__(self):
        super().__post_init__()
        revive_layer("cross_attention", self.cross_attention)

    def __call__(
        self,
        x,
        encoded,
        *,
        each_layer=False,
        segment_ids=None,
        positions=None,
        encoded_segment_ids=None,
        encoded_positions=None,
    ):
        documents = {
            "segment_ids": segment_ids,
            "positions": positions,
            "encoded_segment_ids": encoded_segment_ids,
            "encoded_positions": encoded_positions,
        }
        return self._run_layers(x, (encoded,), each_layer, documents)

    def _make_block(self, attention, feed_forward, **settings):
        return DecoderBlock(
            attention=attention,
            cross_attention=copy_part(self.cross_attention, name="cross_attention"),
            feed_forward=copy_part(feed_forward, name="feed_forward"),
            **settings,
        )
