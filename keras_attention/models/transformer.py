"""`TransformerEncoder`: a stack of Transformer blocks, which have copies of the same layers."""

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

    The stack is a function, not a Keras layer: each call makes new blocks with new weights. Each
    block gets its own copies of the given layers. To make a stack only from sizes, use `of_size`.

    Args:
        num_layers: int, the number of layers that run one after another.
        attention: a layer called as `attention(query, value)`, such as `MultiHeadAttention`, or a
            list with one for each layer, such as windows of different sizes (Beltagy et al., 2020,
            section 3.1).
        feed_forward: a layer called on one tensor, such as `FeedForward`, or a list with one for
            each layer.
        norm: `"pre"`, `"post"`, `"sandwich"`, `"deep_norm"`, `"rezero"`, `"resi_dual"`, or a
            `ka.blocks.Residual`: where blocks normalize and how they add, explained in
            `EncoderBlock`. `PreNorm(first_norm=False)` leaves out the norm before the first
            attention, `PreNorm(final_norm=False)` the norm at the end.
        normalization: the kind of norm, such as `"layer_norm"` or `"rms_norm"`.
        epsilon: float, the epsilon of the norms.
        dropout: float, the dropout rate inside every block.
        layer_scale: float, the first value of learned factors for the output of each attention and
            feed-forward network. None for no factors.
        remat: bool, whether training computes activations again for the gradients, which takes less
            memory and more time.
        stochastic_depth: float, the fraction of examples that skip a branch of the last block in
            training. The fraction grows linearly from 0 at the first block (Huang et al., 2016).
        num_blocks: int, the number of blocks with their own weights. Layer i runs block
            `i * num_blocks // num_layers`. With 1 all layers share one block (Lan et al., 2020,
            *ALBERT*, section 3.1). None is `num_layers`.
        shared_position: bool, whether the positions in the attention of all blocks share their
            weights (Raffel et al., 2020, *T5*). `keras.models.clone_model` loses the sharing.
        scan_layers: bool, whether the layers run as one loop, `ka.blocks.Scan`, so that the
            compiled program does not grow with the number of layers. Only on JAX. All blocks must
            be equal, so `stochastic_depth` and `num_blocks` cannot be used.
        causal: bool, whether the attention hides later tokens, in addition to its mask.
        hidden_dim: int D, the width that x must have. None accepts any width. `of_size` sets it.
        name: str, the prefix of the blocks' names. If it does not end in "block", it is also the
            prefix of the final norm's name.

    Call arguments:
        x: (B, T, D), usually symbolic.
        each_layer: bool, whether to return a list with the output of each layer, for losses on
            intermediate layers. The final norm is applied to all of them.
        segment_ids, positions: int32 (B, T), if a row holds several documents: the document of each
            token, and its position in the document.

    Returns (B, T, D), after the final norm. If several layers share a block, `record_attention`
    calls the attention weights of these layers `block_0/attention`, `block_0/attention:1`, ...

    Raises:
        ValueError: an attention has a position that is added to embeddings, the length of a list is
            not `num_layers`, or two arguments exclude each other.

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

    _num_branches = 2  # attention and feed-forward network

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
        """Make a stack of `MultiHeadAttention` and `FeedForward` from sizes.

        Args:
            num_layers: int, number of layers.
            num_heads: int N. A head has the size `hidden_dim / N`, which must be an integer.
            hidden_dim: int D, the width of the model.
            intermediate_dim: int, the width inside the feed-forward networks.
            dropout: float, the dropout rate inside every block.
            attention_dropout: float, the dropout rate for attention weights.
            activation: the activation of the feed-forward networks, such as `"gelu"` or the gated
                `"geglu"`.
            use_bias: bool, whether the projections in the blocks have a bias.
            score, normalizer, mask, position: how attention scores are computed, how they become
                weights, which tokens may attend to which, and how positions are encoded. The
                choices are explained in `MultiHeadAttention`.
            norm, normalization, epsilon, name: arguments of the class.

        ```python
        import dataclasses
        import keras
        import keras_attention as ka

        encoder = ka.models.TransformerEncoder.of_size(2, 2, 16, 32, position="alibi", norm="post")
        encoder = dataclasses.replace(encoder, remat=True)
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
        checks.check_whole_numbers(self, "num_blocks", optional=True)
        if (self.num_blocks or 0) > self.num_layers:
            raise ValueError(
                f"num_blocks={self.num_blocks} is more than num_layers={self.num_layers}. Choose "
                "at most as many blocks as layers."
            )
        shares = self.num_blocks not in (None, self.num_layers)
        norm = self._residual()
        if isinstance(norm, PreNorm) and not norm.first_norm and shares:
            raise ValueError(
                f"{norm} with num_blocks={self.num_blocks}: the first block also runs in later "
                "layers, which need a norm. Leave out first_norm or num_blocks."
            )
        if self.scan_layers and keras.backend.backend() != "jax":
            raise ValueError(
                f"scan_layers=True is for JAX, but Keras runs on {keras.backend.backend()}. Leave "
                "scan_layers out, or set the environment variable KERAS_BACKEND=jax before you "
                "import Keras."
            )
        if self.scan_layers and shares:
            raise ValueError(
                f"scan_layers=True with num_blocks={self.num_blocks}: each layer of a loop needs "
                "its own block. Leave out scan_layers or num_blocks."
            )
        for attention in self._for_each_layer("attention"):
            if self.causal and not isinstance(attention, AttentionLayer):
                raise ValueError(
                    f"causal=True with attention={attention!r}, which takes no mask of this "
                    "package: expected a layer of ka.attention. Or hide later tokens in your own "
                    "layer and set causal=False."
                )
            position = attention.position if isinstance(attention, AttentionLayer) else None
            if (added := positions.for_role(position, "embed")) is not None:
                raise ValueError(
                    f"position={added!r} is added to embeddings, but attention has none. Give this "
                    "position to the embedding. The attention takes positions that rotate or bias."
                )
        self._for_each_layer("feed_forward")

    def _for_each_layer(self, name):
        """Return a list with the layer that each block copies, `attention` or `feed_forward`.

        The attribute called `name` is a single layer for all blocks, or a list with one for each.
        """
        templates, count = getattr(self, name), self.num_blocks or self.num_layers
        if not isinstance(templates, list | tuple):
            return [revive_layer(name, templates)] * count
        if len(templates) != self.num_layers or len(templates) != count:
            raise ValueError(
                f"{name} has {len(templates)} layers for num_layers={self.num_layers} and "
                f"num_blocks={self.num_blocks}. Give a list of num_layers layers and leave "
                "num_blocks out, or give a single layer."
            )
        return [revive_layer(f"{name}[{i}]", layer) for i, layer in enumerate(templates)]

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        documents = {"segment_ids": segment_ids, "positions": positions}
        return self._run_layers(x, (), each_layer, documents)

    def make_normalization(self, name):
        """Make a normalization layer with the `normalization` and `epsilon` of this stack.

        `name` is the name of the layer, a str.
        """
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
            for block in blocks:  # otherwise the weights' paths would begin with the scan's name
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
        """Return a copy of the position of the first attention, which all blocks share."""
        first = attentions[0]
        if not isinstance(first, AttentionLayer) or any(layer is not first for layer in attentions):
            raise ValueError(
                f"shared_position=True with attention={self.attention!r}: expected one layer of "
                "ka.attention for all blocks. Give such a layer, or leave shared_position out."
            )
        return copy_part(first.position)

    def _residual(self):
        """Return the `Residual` for `norm`, which adds the branches of a block and normalizes."""
        if self.norm == "deep_norm":
            return DeepNorm(self.num_layers, self._num_branches)
        return residuals.get(self.norm)

    def _make_block(self, attention, feed_forward, **settings):
        feed_forward = copy_part(feed_forward, name="feed_forward")
        return EncoderBlock(attention=attention, feed_forward=feed_forward, **settings)


def causal_mask(mask=None):
    """Return a mask that hides later tokens and, if `mask` is given, also what `mask` hides."""
    mask = masks.get(mask)
    return masks.Causal() if mask in (None, masks.Causal()) else masks.Causal() & mask
