"""A stack of Conformer blocks: attention beside convolution, for sound and for words."""

import dataclasses

from keras_attention.blocks import ConformerBlock, ConvolutionModule, PostNorm
from keras_attention.models.transformer import TransformerEncoder


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConformerEncoder(TransformerEncoder):
    """A stack of Conformer blocks (Gulati et al., 2020, section 2), or of encoder blocks.

    Args:
        block: `"conformer"` or `"encoder"`.
        kernel_size: int, of the convolution in a Conformer block; None is 31.
        convolution_norm: its normalization, as in `ConvolutionModule`; None is `"batch_norm"`.
        causal: bool, whether that convolution sees no later vectors.
        num_layers, ...: as in `TransformerEncoder`. The norms of a Conformer block are where the
            paper has them: `norm` is for encoder blocks.
    """

    block: str = "conformer"
    kernel_size: int | None = None
    convolution_norm: str | None = None
    causal: bool = False

    _kinds = ("conformer", "encoder")

    def __post_init__(self):
        super().__post_init__()
        if self.block not in self._kinds:
            kinds = ", ".join(map(repr, self._kinds))
            raise ValueError(f"block={self.block!r}: expected one of {kinds}.")
        if self.block == "conformer" and self.norm != "pre":
            raise ValueError(
                f"norm={self.norm!r}: the norms of a Conformer block are where the paper has them. "
                "Leave it out, or build with block='encoder'."
            )
        for name in ("kernel_size", "convolution_norm"):
            if self.block == "encoder" and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is of a convolution, which block='encoder' "
                    "does not have: leave it out, or build with block='conformer'."
                )

    def _residual(self):
        # A Conformer block ends with a norm of its own: so does a stack of them.
        return PostNorm() if self.block == "conformer" else super()._residual()

    def _block(self, position, mask, **settings):
        if self.block == "encoder":
            return super()._block(position, mask, **settings)
        settings.pop("norm")
        return ConformerBlock(
            first_feed_forward=self._feed_forward("first_feed_forward"),
            attention=self._attention("attention", position, mask),
            feed_forward=self._feed_forward(),
            convolution=ConvolutionModule(
                self.kernel_size or 31,
                normalization=self.convolution_norm or "batch_norm",
                causal=self.causal,
                use_bias=self.use_bias,
                name="convolution",
            ),
            **settings,
        )
