"""`ConformerEncoder`: a stack of Conformer blocks."""

import dataclasses

from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import ConformerBlock, ConvolutionModule, FeedForward, PostNorm
from keras_attention.blocks.inner_layers import copy_part, revive_layer
from keras_attention.core import checks
from keras_attention.models.transformer import TransformerEncoder


@dataclasses.dataclass(frozen=True)
class ConformerEncoder(TransformerEncoder):
    """A stack of Conformer blocks, an encoder for speech (Gulati et al., 2020, section 2).

    A block has attention and a convolution, between two feed-forward networks.

    Args:
        num_layers: int, the number of blocks.
        attention, feed_forward: layers that each block copies. It has two copies of
            `feed_forward`.
        norm: must keep its default.
        normalization, epsilon, ..., name: as in `TransformerEncoder`. `causal` does not change the
            convolution.
        convolution: a layer called on x (B, T, D), which returns the same shape. Each block gets
            its own copy. None is `ConvolutionModule()`.

    Call arguments:
        x: (B, T, D).
        each_layer: bool, whether to return a list with the output of each block.

    Returns (B, T, D).

    Raises:
        ValueError: `segment_ids` are given, which say that a row holds several documents. The
            convolution would mix the vectors of neighboring documents.

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
        """Make a stack with `MultiHeadAttention` and `FeedForward` from sizes.

        Args:
            num_layers, num_heads, ...: sizes and parts of the blocks, explained in
                `TransformerEncoder.of_size`.
            kernel_size: int, the kernel size of the convolution.
            causal: bool, whether the convolution reads only earlier vectors, for streaming. To
                limit the attention too, set `mask`.
        """
        return cls(
            num_layers,
            attention=MultiHeadAttention(
                num_heads,
                checks.divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads),
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
                f"norm={self.norm!r}: a Conformer block always has the norms of the paper. Leave "
                "norm out, or use a TransformerEncoder."
            )
        super().__post_init__()
        if self.convolution is not None:
            revive_layer("convolution", self.convolution)

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        if segment_ids is not None:
            raise ValueError(
                "ConformerEncoder was called with segment_ids (several documents in a row), but "
                "its convolution would mix vectors of different documents. Build without "
                "packed=True, or with a TransformerEncoder."
            )
        return super().__call__(x, each_layer=each_layer, positions=positions)

    def _residual(self):
        return PostNorm()  # so that the stack adds no final norm: each block ends with one

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
