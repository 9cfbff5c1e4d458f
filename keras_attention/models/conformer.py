"""A stack of Conformer blocks: attention beside convolution, for sound and for words."""

import dataclasses

from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import ConformerBlock, ConvolutionModule, FeedForward, PostNorm
from keras_attention.blocks.inner_layers import copy_part, revive_layer
from keras_attention.core import checks
from keras_attention.models.transformer import TransformerEncoder


@dataclasses.dataclass(frozen=True)
class ConformerEncoder(TransformerEncoder):
    """A stack of Conformer blocks (Gulati et al., 2020, section 2).

    Args:
        num_layers, attention, feed_forward, ...: as in `TransformerEncoder`. Each block has two
            copies of the feed-forward network. The norms are where the paper has them: leave `norm`
            out.
        convolution: a layer called on one tensor, the template of the convolution in a block; None
            is `ConvolutionModule()`.

    Call arguments:
        x: (B, T, D). each_layer: as in `TransformerEncoder`.

    Returns (B, T, D). Packed documents are refused: the convolution joins neighbouring vectors.

    Example:

    ```python
    import keras
    import keras_attention as ka

    encoder = ka.models.ConformerEncoder(
        num_layers=2,
        attention=ka.attention.MultiHeadAttention(2, 8, position="rotary"),
        feed_forward=ka.blocks.FeedForward(64, activation="silu"),
        convolution=ka.blocks.ConvolutionModule(7),
    )
    assert encoder(keras.Input((None, 16))).shape == (None, None, 16)
    ```
    """

    convolution: object = dataclasses.field(default=None, kw_only=True)

    @classmethod
    def of_size(
        cls,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        *,
        kernel_size=31,
        causal=False,
        dropout=0.0,
        attention_dropout=0.0,
        activation="silu",
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        name="block",
    ):
        """Make a stack by its sizes, as `TransformerEncoder.of_size`.

        Args:
            num_layers, num_heads, ...: as there.
            kernel_size: int, of the convolution.
            causal: bool, whether the convolution sees no later vectors, for streaming.
        """
        key_dim = checks.divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
        return cls(
            num_layers,
            attention=MultiHeadAttention(
                num_heads,
                key_dim,
                dropout=attention_dropout,
                score=score,
                normalizer=normalizer,
                mask=mask,
                position=position,
            ),
            feed_forward=FeedForward(intermediate_dim, activation, dropout),
            convolution=ConvolutionModule(kernel_size, causal=causal),
            dropout=dropout,
            hidden_dim=hidden_dim,
            name=name,
        )

    def __post_init__(self):
        if self.norm != "pre":
            raise ValueError(
                f"norm={self.norm!r}: the norms of a Conformer block are where the paper has them. "
                "Leave it out, or use a TransformerEncoder."
            )
        super().__post_init__()
        if self.convolution is not None:
            revive_layer("convolution", self.convolution)

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        if segment_ids is not None:
            raise ValueError(
                "ConformerEncoder was called on packed documents, and its convolution joins "
                "neighbouring vectors, also of different documents. Build without packed=True, or "
                "with a TransformerEncoder."
            )
        return super().__call__(x, each_layer=each_layer, positions=positions)

    def _residual(self):
        # A Conformer block ends with a norm of its own: so does a stack of them.
        return PostNorm()

    def _make_block(self, attention, feed_forward, **settings):
        del settings["norm"]
        convolution = ConvolutionModule() if self.convolution is None else self.convolution
        return ConformerBlock(
            first_feed_forward=copy_part(feed_forward, name="first_feed_forward"),
            attention=attention,
            feed_forward=copy_part(feed_forward, name="feed_forward"),
            convolution=copy_part(convolution, name="convolution"),
            **settings,
        )
