"""Stacks of Transformer blocks, whose fields are the keywords that builders forward."""

import dataclasses
import functools

import keras

from keras_attention import masks, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import (
    AttentionPooling,
    DecoderBlock,
    DeepNorm,
    EncoderBlock,
    FeedForward,
    PreNorm,
    Scan,
    residuals,
)
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.blocks.token_embedding import PADDING
from keras_attention.core import checks
from keras_attention.models.keywords import divide_exactly, get_position


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerEncoder:
    """A stack of encoder blocks (Vaswani et al., 2017, section 3.1).

    Builders of Transformers take these keywords and forward them; each has defaults of its own. A
    builder of your own makes a stack and calls it on what its embeddings return.

    Args:
        num_layers: int, how many layers run one after another.
        num_heads: int N, of every attention.
        hidden_dim: int D, the width of the model.
        intermediate_dim: int, the width inside the feed-forward networks.
        key_dim: int H, the size of a head; None is `hidden_dim / num_heads`.
        num_key_value_heads: int that divides `num_heads`, None is as many (Ainslie et al., 2023,
            *GQA*): the cache of a decoding model shrinks with it.
        num_blocks: int, how many blocks have weights of their own, None is `num_layers`. 1 shares
            one block between all layers (Lan et al., 2020, *ALBERT*, section 3.1), more make
            groups: layer i runs block `i * num_blocks // num_layers`.
        dropout: float, inside every block, and where the builder says.
        attention_dropout: float, on attention weights.
        stochastic_depth: float, the share of examples that skip a branch of the last block in
            training; it grows linearly from 0 at the first (Huang et al., 2016).
        layer_scale: float, what `LayerScale` starts from, or None for none.
        norm: `"pre"`, `"post"`, `"sandwich"`, `"deep_norm"`, `"rezero"`, `"resi_dual"`, or a
            `ka.blocks.Residual`: how a branch joins the stream, as in `EncoderBlock`.
        first_norm: bool, whether a norm precedes the first attention of the stack; with
            `norm="pre"` or `"sandwich"` it may be left out, where the embeddings are normalized
            (Warner et al., 2024, *ModernBERT*, section 2.1).
        final_norm: bool, whether a norm ends the stack; with `norm="pre"` or `"sandwich"` it may be
            left out, where a norm follows what the vectors are pooled to.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`.
        activation: of the feed-forward networks, gates such as `"geglu"` included.
        use_bias: bool, whether projections in the blocks have a bias.
        qkv_bias: bool, whether those of queries, keys and values have one, where it is otherwise
            with the others (Qwen2, 2024); None is as `use_bias` says.
        key_bias: bool, whether that of keys has one, where it is otherwise with those of queries
            and values (Radford et al., 2022).
        qk_norm: `"rms_norm"`, `"layer_norm"` or None, of queries and keys, as in
            `MultiHeadAttention`. qk_norm_epsilon: float, of these norms; None is `epsilon`.
        position: a part, its name or its config; a list combines them. Those that rotate or bias go
            into the self-attention of every block, those that are added to the embedding, for
            which a builder asks `embedding_position()`. `"learned"` is a table of `max_length`.
        max_length: int, how many positions `position="learned"` has.
        shared_position: bool, whether the blocks share the weights of their position (Raffel et
            al., 2020, *T5*); `clone_model` gives each block its own.
        score, normalizer: parts, their names or their configs.
        mask: what a token may attend to, a part, its name or its config; None is everything.
        layer_masks, layer_positions: lists with a mask, or a position that rotates or biases, or
            None, for each layer, in the place of `mask` and `position` (Beltagy et al., 2020,
            section 3.1, windows that grow; Gemma 3, 2025, every sixth layer sees all).
        epsilon: float, of the normalizations.
        remat: bool, whether training keeps only what goes from block to block, and computes what is
            within a block again for the gradients (Chen et al., 2016, *Training deep nets with
            sublinear memory cost*): less memory, about a third more time, the same losses, with the
            same dropout. Inference, text that is written, recorded attention and exported files are
            as without.
        scan_layers: bool, whether the layers run as one loop, `ka.blocks.Scan`, on JAX alone: what
            is compiled does not grow with their number. All blocks have to be alike: no
            `stochastic_depth`, which grows from layer to layer, no `num_blocks`, and the same mask
            and position in all. Text that is written and recorded attention run layer by layer. The
            weights are in the same order as without, and `set_weights` takes either model's.
        padding: a promise about the ids of every call, by which attention on GPUs needs no mask
            tensor: `"none"`, that none is padding (no layer makes a mask then); `"right"`, that
            padding comes after the tokens of a row alone; None promises nothing. Results are the
            same. A call outside of a compiled function, `fit` or `predict` checks its ids; in these
            a promise that is broken gives wrong numbers: attention to padding.

    Call arguments:
        x: (B, T, D), as a rule symbolic.
        name: str, what the names of the blocks begin with.
        each_layer: bool, whether to return a list with the output of each layer, all after the same
            last norm: for losses of intermediate layers.
        segment_ids, positions: of packed documents, as `EncoderBlock` takes them.

    Returns (B, T, D), after the norm that ends a stack of this `norm`. A layer that runs a block
    again records its attention under `block_0/attention:1`, `:2`, ...

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    encoder = ka.models.TransformerEncoder(
        num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32, position="sinusoidal"
    )
    tokens = keras.Input((None,), dtype="int32")
    embedding = ka.blocks.TokenEmbedding(
        100, encoder.hidden_dim, position=encoder.embedding_position()
    )
    x = embedding(tokens)
    model = keras.Model(tokens, encoder(x))
    assert model(np.array([[5, 7, 9, 0]])).shape == (1, 4, 16)
    ```
    """

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
            key_dim = divide_exactly("hidden_dim", self.hidden_dim, "num_heads", self.num_heads)
            object.__setattr__(self, "key_dim", key_dim)
        if self.num_blocks is not None:
            checks.check_whole_numbers(self, "num_blocks")
            if self.num_blocks > self.num_layers:
                raise ValueError(
                    f"num_blocks={self.num_blocks} is more than num_layers={self.num_layers}: "
                    "every block runs in one layer or more. Choose at most as many."
                )
        object.__setattr__(self, "position", get_position(self.position, self.max_length))
        checks.check_choice(self, "padding", PADDING)
        self._check_layers()
        self._check_norms()
        self._check_scan()

    def _check_layers(self):
        """Makes lists of parts, one for each layer, of what is given for each layer."""
        for name, family in (("layer_masks", masks), ("layer_positions", positions)):
            given = getattr(self, name)
            if given is None:
                continue
            if len(given) != self.num_layers or (self.num_blocks or self.num_layers) != len(given):
                raise ValueError(
                    f"{name} has {len(given)} entries for {self.num_layers} layers: expected one "
                    "for each layer, and a block of its own for each (no num_blocks)."
                )
            object.__setattr__(self, name, [family.get(part) for part in given])
        for part in self.layer_positions or ():
            if positions.for_role(part, "embed") is not None:
                raise ValueError(
                    f"layer_positions has {part!r}, which is added to embeddings, and not to a "
                    "layer: give it as position=."
                )
        added = positions.for_role(self.position, "rotate", "bias")
        if self.layer_positions is not None and added is not None:
            raise ValueError(
                f"position={added!r} is for all layers, and layer_positions= for each: leave one "
                "of them out."
            )

    def _check_norms(self):
        for name, place in (("first_norm", "begin"), ("final_norm", "end")):
            if not getattr(self, name) and not isinstance(self._residual(), PreNorm):
                raise ValueError(
                    f"{name}=False with norm={self.norm!r}: expected 'pre' or 'sandwich', which "
                    f"{place} with a norm. Choose one of them, or leave {name} out."
                )
        if self.first_norm:
            return
        if self.num_blocks not in (None, self.num_layers):
            raise ValueError(
                f"first_norm=False with num_blocks={self.num_blocks}: the first block runs in "
                "several layers. Leave one of them out."
            )

    def _check_scan(self):
        if self.scan_layers and keras.backend.backend() != "jax":
            raise ValueError(
                f"scan_layers=True is for JAX, and Keras runs on {keras.backend.backend()}. Leave "
                "it out, or set the environment variable KERAS_BACKEND=jax before Keras is "
                "imported."
            )
        if self.scan_layers and self.num_blocks not in (None, self.num_layers):
            raise ValueError(
                f"scan_layers=True with num_blocks={self.num_blocks}: each layer of a loop has a "
                "block of its own. Leave one of them out."
            )

    def __call__(self, x, *, name="block", each_layer=False, **documents):
        return self._run_layers(x, (), name, each_layer, documents)

    def embedding_position(self):
        """The part of `position` that is added to embeddings, a copy of its own, or None.

        A builder gives it to its embedding, as `TokenEmbedding(position=...)`; a stack whose
        builder never asked for it refuses positions that are added, which would be lost.
        """
        object.__setattr__(self, "_position_is_embedded", True)
        return copy_part(positions.for_role(self.position, "embed"))

    def make_normalization(self, name):
        """A normalization layer of this stack's kind."""
        return NORMALIZATIONS[self.normalization](epsilon=self.epsilon, name=name)

    def make_pooling(self, name, num_prefix_tokens=0):
        """An `AttentionPooling` whose inner layers are as those of a block."""
        return AttentionPooling(
            attention=self._attention("attention", None),
            feed_forward=self._feed_forward(),
            num_prefix_tokens=num_prefix_tokens,
            normalization=self.normalization,
            epsilon=self.epsilon,
            name=name,
        )

    def _run_layers(self, x, source, name, each_layer, documents):
        if x.shape[-1] != self.hidden_dim:
            raise ValueError(
                f"{type(self).__name__}(hidden_dim={self.hidden_dim}) was called on vectors of "
                f"size {x.shape[-1]}. Embed into hidden_dim, or set hidden_dim={x.shape[-1]}."
            )
        added = positions.for_role(self.position, "embed")
        if added is not None and not self._position_is_embedded:
            raise ValueError(
                f"position={added!r} is added to embeddings, and this builder does not: it never "
                "asks the stack for embedding_position(). Give its embedding "
                "position=encoder.embedding_position()."
            )
        num_blocks = self.num_blocks or self.num_layers
        norm = self._residual()
        position = positions.for_role(self.position, "rotate", "bias")
        shared = copy_part(position) if self.shared_position else None
        each = self.layer_positions or [position] * num_blocks
        seen = self.layer_masks or [self.mask] * num_blocks
        blocks = [
            self._block(
                copy_part(each[i]) if shared is None else shared,
                seen[i],
                norm=norm if i or self.first_norm else dataclasses.replace(norm, first_norm=False),
                normalization=self.normalization,
                dropout=self.dropout,
                stochastic_depth=self.stochastic_depth * i / max(num_blocks - 1, 1),
                layer_scale=self.layer_scale,
                epsilon=self.epsilon,
                remat=self.remat,
                name=f"{name}_{i}",
            )
            for i in range(num_blocks)
        ]
        make = functools.cache(lambda place: self.make_normalization(f"final_{place}"))
        outputs = []
        if self.scan_layers:
            for block in blocks:  # here, and not within the loop, whose name paths would begin with
                block.build(x.shape, *(encoded.shape for encoded in source))
            scan = Scan(blocks, each_layer=each_layer, name=f"{name}s")
            outputs = scan(x, *source, **documents)
            outputs = outputs if each_layer else [outputs]
        else:
            for i in range(self.num_layers):
                x = blocks[i * num_blocks // self.num_layers](x, *source, **documents)
                outputs.append(x)
        if not each_layer:
            outputs = outputs[-1:]
        outputs = [norm.end(x, make) if self.final_norm else x for x in outputs]
        return outputs if each_layer else outputs[-1]

    def _residual(self):
        """The residual called `norm`; DeepNorm depends on the depth of the stack."""
        return DeepNorm(self.num_layers) if self.norm == "deep_norm" else residuals.get(self.norm)

    def _block(self, position, mask, **settings):
        return EncoderBlock(
            attention=self._attention("attention", position, mask),
            feed_forward=self._feed_forward(),
            **settings,
        )

    def _attention(self, name, position, mask=None):
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
            score=copy_part(self.score),
            normalizer=copy_part(self.normalizer),
            mask=mask,
            position=position,
            padding="right" if self.padding == "right" else None,
            name=name,
        )

    def _feed_forward(self, name="feed_forward"):
        return FeedForward(
            self.intermediate_dim,
            activation=self.activation,
            dropout=self.dropout,
            use_bias=self.use_bias,
            name=name,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerDecoder(TransformerEncoder):
    """A stack of decoder blocks beside an encoder (Vaswani et al., 2017, section 3.1).

    The future stays hidden, whatever `mask` allows. A decoder without a source is a
    `TransformerEncoder` with the mask `"causal"`.

    Args:
        cross_position: a position that rotates or biases in cross-attention, or None.
        num_layers, ...: as in `TransformerEncoder`; `position` and `mask` are those of the
            self-attention.

    Call arguments:
        x: (B, T, D). encoded: (B, S, E), what the encoder returns.
        name: str, what the names of the blocks begin with.
        each_layer: as in `TransformerEncoder`.
        segment_ids, positions, encoded_segment_ids, encoded_positions: of packed documents, as
            `DecoderBlock` takes them.

    Returns (B, T, D).

    Example:

    ```python
    import keras
    import keras_attention as ka

    decoder = ka.models.TransformerDecoder(
        num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32, norm="post"
    )
    x, encoded = keras.Input((None, 16)), keras.Input((None, 24))
    assert decoder(x, encoded).shape == (None, None, 16)
    ```
    """

    cross_position: object = None

    def __call__(self, x, encoded, *, name="block", each_layer=False, **documents):
        return self._run_layers(x, (encoded,), name, each_layer, documents)

    def _residual(self):
        if self.norm == "deep_norm":
            return DeepNorm(self.num_layers, num_branches=3)
        return super()._residual()

    def _block(self, position, mask, **settings):
        of_source = copy_part(positions.get(self.cross_position))
        return DecoderBlock(
            attention=self._attention("attention", position, causal_mask(mask)),
            cross_attention=self._attention("cross_attention", of_source),
            feed_forward=self._feed_forward(),
            **settings,
        )


def causal_mask(mask=None):
    """`mask` without sight of the future: the mask of a decoder."""
    mask = masks.get(mask)
    return masks.Causal() if mask in (None, masks.Causal()) else masks.Causal() & mask


def copy_part(part):
    """A copy of a part that has weights, so that blocks do not share them; others as they are."""
    if isinstance(part, keras.layers.Layer):
        return part.__class__.from_config(part.get_config())
    return part
