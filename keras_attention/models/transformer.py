"""Stacks of Transformer blocks: each block gets its own copy of the layers that are given."""

import dataclasses
import functools

import keras

from keras_attention import masks, positions
from keras_attention.attention import AttentionLayer, MultiHeadAttention
from keras_attention.blocks import (
    DeepNorm,
    EncoderBlock,
    FeedForward,
    PreNorm,
    Scan,
    residuals,
)
from keras_attention.blocks.inner_layers import copy_part, revive_layer
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks


@dataclasses.dataclass(frozen=True)
class TransformerEncoder:
    """A stack of encoder blocks (Vaswani et al., 2017, section 3.1).

    The layers that are given are templates: each block gets a copy with weights of its own, and so
    does each call of the stack. `of_size` makes the usual ones.

    Args:
        num_layers: int, how many layers run one after another.
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`, or a
            list of them, one for each layer (Beltagy et al., 2020, section 3.1, windows that grow;
            Gemma 3, 2025, every sixth layer sees all).
        feed_forward: a layer called on one tensor, such as `FeedForward`, or a list of them.
        norm: `"pre"`, `"post"`, `"sandwich"`, `"deep_norm"`, `"rezero"`, `"resi_dual"`, or a
            `ka.blocks.Residual`. It decides how a branch joins the stream, as in `EncoderBlock`.
            `PreNorm(first_norm=False)` leaves out the norm before the first attention, and
            `PreNorm(final_norm=False)` the norm that ends the stack.
        normalization, dropout, layer_scale, epsilon: as in `EncoderBlock`.
        stochastic_depth: float, the share of examples that skip a branch of the last block in
            training. It grows linearly from 0 at the first block (Huang et al., 2016).
        num_blocks: int, how many blocks have weights of their own, None is `num_layers`. 1 shares
            one block between all layers (Lan et al., 2020, *ALBERT*, section 3.1), more make
            groups: layer i runs block `i * num_blocks // num_layers`.
        shared_position: bool, whether the blocks share the weights of the position in their
            attention (Raffel et al., 2020, *T5*). `clone_model` gives each block its own.
        remat: bool, whether training computes what is within a block again for the gradients, as
            in `EncoderBlock`.
        scan_layers: bool, whether the layers run as one loop, `ka.blocks.Scan`, on JAX only. The
            compiled program does not grow with their number. All blocks must be alike: no
            `stochastic_depth`, no `num_blocks`, one attention for all. The weights have the same
            order as without the loop.
        causal: bool, whether the future is hidden from the attention, whatever its mask allows.
        hidden_dim: int D, the width that the stack must be called on, or None for any. `of_size`
            sets it.
        name: str, what the names of the blocks begin with, and that of the norm that ends the
            stack, unless it ends in "block".

    Call arguments:
        x: (B, T, D), usually symbolic.
        each_layer: bool, whether to return a list with the output of each layer, all after the same
            last norm, for losses of intermediate layers.
        segment_ids, positions: of packed documents, as `EncoderBlock` takes them.

    Returns (B, T, D), after the norm that ends a stack of this `norm`. A layer that runs a block
    again records its attention under `block_0/attention:1`, `:2`, ...

    Raises:
        ValueError: an attention has a position that is added to embeddings, a list has another
            length than `num_layers`, or two arguments exclude each other.

    Example:

    ```python
    import keras
    import keras_attention as ka

    encoder = ka.models.TransformerEncoder(
        num_layers=2,
        attention=ka.attention.MultiHeadAttention(2, 8, position="rotary", qk_norm="rms_norm"),
        feed_forward=ka.blocks.FeedForward(32, activation="swiglu"),
        norm="sandwich",
    )
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(100, 16)(tokens)
    model = keras.Model(tokens, encoder(x))
    assert model.output_shape == (None, None, 16)
    assert model.get_layer("block_1").attention.qk_norm == "rms_norm"
    ```
    """

    num_layers: int
    _: dataclasses.KW_ONLY
    attention: object
    feed_forward: object
    norm: object = "pre"
    normalization: str = "layer_norm"
    epsilon: float = 1e-6
    dropout: float = 0.0
    stochastic_depth: float = 0.0
    layer_scale: float | None = None
    num_blocks: int | None = None
    shared_position: bool = False
    remat: bool = False
    scan_layers: bool = False
    causal: bool = False
    hidden_dim: int | None = None
    name: str = "block"

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
        norm="pre",
        normalization="layer_norm",
        epsilon=1e-6,
        name="block",
    ):
        """Make a stack of `MultiHeadAttention` and `FeedForward` by its sizes.

        Args:
            num_layers: int.
            num_heads: int N, which divides `hidden_dim`: a head has the size `hidden_dim / N`.
            hidden_dim: int D, the width of the model.
            intermediate_dim: int, the width inside the feed-forward networks.
            dropout: float, inside every block. attention_dropout: float, on attention weights.
            activation: of the feed-forward networks, gates such as `"geglu"` included.
            use_bias: bool, whether the projections in the blocks have a bias.
            score, normalizer, mask, position: parts of the attention.
            norm, normalization, epsilon, name: as in the class.

        Example:

        ```python
        import dataclasses
        import keras
        import keras_attention as ka

        encoder = ka.models.TransformerEncoder.of_size(2, 2, 16, 32, position="alibi", norm="post")
        encoder = dataclasses.replace(encoder, remat=True)  # what is rarer
        assert encoder(keras.Input((None, 16))).shape == (None, None, 16)
        ```
        """
        return cls(
            num_layers,
            attention=MultiHeadAttention(
                num_heads,
                checks.divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads),
                dropout=attention_dropout,
                use_bias=use_bias,
                score=score,
                normalizer=normalizer,
                mask=mask,
                position=position,
            ),
            feed_forward=FeedForward(intermediate_dim, activation, dropout, use_bias),
            norm=norm,
            normalization=normalization,
            epsilon=epsilon,
            dropout=dropout,
            hidden_dim=hidden_dim,
            name=name,
        )

    def __post_init__(self):
        checks.check_whole_numbers(self, "num_layers")
        if self.num_blocks is not None:
            checks.check_whole_numbers(self, "num_blocks")
        if (self.num_blocks or 0) > self.num_layers:
            raise ValueError(
                f"num_blocks={self.num_blocks} is more than num_layers={self.num_layers}: every "
                "block runs in one layer or more. Choose at most as many."
            )
        shares = self.num_blocks not in (None, self.num_layers)
        norm = self._residual()
        if isinstance(norm, PreNorm) and not norm.first_norm and shares:
            raise ValueError(
                f"{norm} with num_blocks={self.num_blocks}: the first block runs in several "
                "layers, which all need a norm. Leave one of them out."
            )
        if self.scan_layers and keras.backend.backend() != "jax":
            raise ValueError(
                f"scan_layers=True is for JAX, and Keras runs on {keras.backend.backend()}. Leave "
                "it out, or set the environment variable KERAS_BACKEND=jax before Keras is "
                "imported."
            )
        if self.scan_layers and shares:
            raise ValueError(
                f"scan_layers=True with num_blocks={self.num_blocks}: each layer of a loop has a "
                "block of its own. Leave one of them out."
            )
        for attention in self._for_each_layer("attention"):
            if self.causal and not isinstance(attention, AttentionLayer):
                raise ValueError(
                    f"causal=True with attention={attention!r}, which takes no mask part: expected "
                    "a layer of ka.attention. Give one, or hide the future in a layer of your own "
                    "and set causal=False."
                )
            position = attention.position if isinstance(attention, AttentionLayer) else None
            if (added := positions.for_role(position, "embed")) is not None:
                raise ValueError(
                    f"position={added!r} is added to embeddings, and a stack has none: give it to "
                    "the embedding, and to the attention only what rotates or biases."
                )
        self._for_each_layer("feed_forward")

    def _for_each_layer(self, name):
        """The template of each block, where one or a list of them is given."""
        templates, count = getattr(self, name), self.num_blocks or self.num_layers
        if not isinstance(templates, list | tuple):
            return [revive_layer(name, templates)] * count
        if len(templates) != self.num_layers or len(templates) != count:
            raise ValueError(
                f"{name} has {len(templates)} layers for num_layers={self.num_layers}: a list has "
                "one for each layer, without num_blocks. Give as many, or one layer for all."
            )
        return [revive_layer(f"{name}[{i}]", layer) for i, layer in enumerate(templates)]

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        documents = {"segment_ids": segment_ids, "positions": positions}
        return self._run_layers(x, (), each_layer, documents)

    def make_normalization(self, name):
        """Make a normalization layer of this stack's kind."""
        return NORMALIZATIONS[self.normalization](epsilon=self.epsilon, name=name)

    def _run_layers(self, x, source, each_layer, documents):
        if self.hidden_dim not in (None, x.shape[-1]):
            raise ValueError(
                f"{type(self).__name__}(hidden_dim={self.hidden_dim}) was called on vectors of "
                f"size {x.shape[-1]}. Embed into hidden_dim, or set hidden_dim={x.shape[-1]}."
            )
        documents = {name: value for name, value in documents.items() if value is not None}
        blocks, outputs = self._make_blocks(), []
        if self.scan_layers:
            for block in blocks:  # here, and not within the loop, whose name paths would begin with
                block.build(x.shape, *(encoded.shape for encoded in source))
            scan = Scan(blocks, each_layer=each_layer, name=f"{self.name}s")
            outputs = scan(x, *source, **documents)
            outputs = outputs if each_layer else [outputs]
        else:
            for i in range(self.num_layers):
                x = blocks[i * len(blocks) // self.num_layers](x, *source, **documents)
                outputs.append(x)
        norm = self._residual()
        prefix = "" if self.name.endswith("block") else f"{self.name}_"
        make = functools.cache(lambda place: self.make_normalization(f"{prefix}final_{place}"))
        outputs = [norm.end(x, make) for x in (outputs if each_layer else outputs[-1:])]
        return outputs if each_layer else outputs[-1]

    def _make_blocks(self):
        attentions, norm = self._for_each_layer("attention"), self._residual()
        changes = {}
        if self.shared_position:
            changes["position"] = self._copy_position(attentions)
        blocks = []
        for i, feed_forward in enumerate(self._for_each_layer("feed_forward")):
            if i == 1 and isinstance(norm, PreNorm):
                norm = dataclasses.replace(norm, first_norm=True)
            attention = copy_part(attentions[i], name="attention", **changes)
            if self.causal:
                attention.mask = causal_mask(attention.mask)
            blocks.append(
                self._make_block(
                    attention,
                    feed_forward,
                    norm=norm,
                    normalization=self.normalization,
                    dropout=self.dropout,
                    stochastic_depth=self.stochastic_depth * i / max(len(attentions) - 1, 1),
                    layer_scale=self.layer_scale,
                    epsilon=self.epsilon,
                    remat=self.remat,
                    name=f"{self.name}_{i}",
                )
            )
        return blocks

    def _copy_position(self, attentions):
        """One position for all blocks."""
        first = attentions[0]
        if not isinstance(first, AttentionLayer) or any(layer is not first for layer in attentions):
            raise ValueError(
                f"shared_position=True with attention={self.attention!r}: expected one layer of "
                "ka.attention for all blocks. Give one, or leave shared_position out."
            )
        return copy_part(first.position)

    def _residual(self):
        """The residual called `norm`; DeepNorm depends on the depth of the stack."""
        return DeepNorm(self.num_layers) if self.norm == "deep_norm" else residuals.get(self.norm)

    def _make_block(self, attention, feed_forward, **settings):
        feed_forward = copy_part(feed_forward, name="feed_forward")
        return EncoderBlock(attention=attention, feed_forward=feed_forward, **settings)


def causal_mask(mask=None):
    """Return `mask` without sight of the future: the mask of a decoder."""
    mask = masks.get(mask)
    return masks.Causal() if mask in (None, masks.Causal()) else masks.Causal() & mask
