"""The keywords that builders forward to their stacks, one by one, until they take parts."""

import dataclasses

from keras_attention import masks, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import (
    AttentionPooling,
    ConvolutionModule,
    FeedForward,
    PreNorm,
    residuals,
)
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.blocks.token_embedding import PADDING
from keras_attention.core import checks
from keras_attention.models.conformer import ConformerEncoder
from keras_attention.models.keywords import get_position
from keras_attention.models.transformer import TransformerDecoder, TransformerEncoder


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderKeywords:
    """Keywords of a `TransformerEncoder` of `MultiHeadAttention` and `FeedForward`."""

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    key_dim: int | None = None
    num_key_value_heads: int | None = None
    num_blocks: int | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    stochastic_depth: float = 0.0
    layer_scale: float | None = None
    norm: object = "pre"
    first_norm: bool = True
    final_norm: bool = True
    normalization: str = "layer_norm"
    activation: object = "gelu"
    use_bias: bool = True
    qkv_bias: bool | None = None
    key_bias: bool | None = None
    qk_norm: str | None = None
    qk_norm_epsilon: float | None = None
    position: object = None
    max_length: int | None = None
    shared_position: bool = False
    score: object = "scaled_dot"
    normalizer: object = "softmax"
    mask: object = None
    layer_masks: object = None
    layer_positions: object = None
    epsilon: float = 1e-6
    remat: bool = False
    scan_layers: bool = False
    padding: str | None = None

    _position_is_embedded = False

    def __post_init__(self):
        if self.key_dim is None:
            key_dim = checks.divide_exactly(
                "hidden_dim", self.hidden_dim, "num_heads", self.num_heads
            )
            object.__setattr__(self, "key_dim", key_dim)
        object.__setattr__(self, "position", get_position(self.position, self.max_length))
        checks.check_choice(self, "padding", PADDING)
        for name, family in (("layer_masks", masks), ("layer_positions", positions)):
            if getattr(self, name) is not None:
                parts = [family.get(part) for part in getattr(self, name)]
                if len(parts) != self.num_layers:
                    raise ValueError(
                        f"{name} has {len(parts)} entries for {self.num_layers} layers: expected "
                        "one for each layer."
                    )
                object.__setattr__(self, name, parts)
        added = positions.for_role(self.position, "rotate", "bias")
        if self.layer_positions is not None and added is not None:
            raise ValueError(
                f"position={added!r} is for all layers, and layer_positions= for each: leave one "
                "of them out."
            )

    def embedding_position(self):
        """Return a copy of the part of `position` that is added to embeddings, or None."""
        object.__setattr__(self, "_position_is_embedded", True)
        return copy_part(positions.for_role(self.position, "embed"))

    def make_normalization(self, name):
        """Make a normalization layer of this stack's kind."""
        return NORMALIZATIONS[self.normalization](epsilon=self.epsilon, name=name)

    def make_pooling(self, name, num_prefix_tokens=0):
        """Make an `AttentionPooling` whose inner layers are as those of a block."""
        return AttentionPooling(
            attention=self._attention(None, None),
            feed_forward=self._feed_forward(),
            num_prefix_tokens=num_prefix_tokens,
            normalization=self.normalization,
            epsilon=self.epsilon,
            name=name,
        )

    def __call__(self, x, *, name="block", each_layer=False, **documents):
        return self.make_stack(name)(x, each_layer=each_layer, **documents)

    def make_stack(self, name):
        """Make the stack."""
        return TransformerEncoder(**self._list_settings(name))

    def _list_settings(self, name):
        added = positions.for_role(self.position, "embed")
        if added is not None and not self._position_is_embedded:
            raise ValueError(
                f"position={added!r} is added to tokens, and this builder embeds none. Use one "
                "that rotates or biases, such as 'rotary'."
            )
        norm = self.norm
        if not (self.first_norm and self.final_norm):
            norm = residuals.get(norm)
            if not isinstance(norm, PreNorm):
                wrong = "final_norm" if self.first_norm else "first_norm"
                raise ValueError(f"{wrong}=False with norm={norm!r}: expected 'pre' or 'sandwich'.")
            norm = dataclasses.replace(norm, first_norm=self.first_norm, final_norm=self.final_norm)
        position = positions.for_role(self.position, "rotate", "bias")
        attention = self._attention(self.mask, position)
        if self.layer_masks or self.layer_positions:
            count = self.num_layers
            attention = [
                self._attention(mask, position)
                for mask, position in zip(
                    self.layer_masks or [self.mask] * count,
                    self.layer_positions or [position] * count,
                    strict=True,
                )
            ]
        names = (
            *("num_layers", "normalization", "epsilon", "dropout", "stochastic_depth"),
            *("layer_scale", "num_blocks", "shared_position", "remat", "scan_layers", "hidden_dim"),
        )
        return {name: getattr(self, name) for name in names} | {
            "attention": attention,
            "feed_forward": self._feed_forward(),
            "norm": norm,
            "name": name,
        }

    def _attention(self, mask, position):
        return MultiHeadAttention(
            self.num_heads,
            self.key_dim,
            num_key_value_heads=self.num_key_value_heads,
            dropout=self.attention_dropout,
            use_bias=self.use_bias,
            qkv_bias=self.qkv_bias,
            key_bias=self.key_bias,
            qk_norm=self.qk_norm,
            qk_norm_epsilon=self.epsilon if self.qk_norm_epsilon is None else self.qk_norm_epsilon,
            score=self.score,
            normalizer=self.normalizer,
            mask=mask,
            position=position,
            padding="right" if self.padding == "right" else None,
            name="attention",
        )

    def _feed_forward(self):
        return FeedForward(
            self.intermediate_dim,
            activation=self.activation,
            dropout=self.dropout,
            use_bias=self.use_bias,
            name="feed_forward",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderKeywords(EncoderKeywords):
    """Keywords of a `TransformerDecoder`."""

    cross_position: object = None

    def __call__(self, x, encoded, *, name="block", each_layer=False, **documents):
        return self.make_stack(name)(x, encoded, each_layer=each_layer, **documents)

    def make_stack(self, name):
        cross_attention = self._attention(None, positions.get(self.cross_position))
        return TransformerDecoder(**self._list_settings(name), cross_attention=cross_attention)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConformerKeywords(EncoderKeywords):
    """Keywords of a `ConformerEncoder`, or of a stack that stands in its place."""

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
        for name in ("kernel_size", "convolution_norm"):
            if self.block != "conformer" and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is of a convolution, which block="
                    f"{self.block!r} does not have: leave it out, or build with block='conformer'."
                )

    def make_stack(self, name):
        if self.block == "encoder":
            return super().make_stack(name)
        convolution = ConvolutionModule(
            self.kernel_size or 31,
            normalization=self.convolution_norm or "batch_norm",
            causal=self.causal,
            use_bias=self.use_bias,
        )
        return ConformerEncoder(**self._list_settings(name), convolution=convolution)
