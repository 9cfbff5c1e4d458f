"""The encoder block: attention and a feed-forward network, each with a residual and norms."""

import functools

import keras
from keras import ops

from keras_attention.attention.inputs import check_rank
from keras_attention.blocks import residuals
from keras_attention.blocks.inner_layers import (
    build_attention,
    call_attention,
    call_with_mask,
    revive_layer,
    serialize_inner,
)
from keras_attention.blocks.normalization import NORMALIZATIONS, LayerScale
from keras_attention.blocks.rematerialization import rematerializes
from keras_attention.core import keras_internals
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.token_layout import pin_tokens


@keras.saving.register_keras_serializable(package="keras_attention")
class EncoderBlock(IntegerInputs, keras.layers.Layer):
    """A Transformer encoder block (Vaswani et al., 2017, section 3.1).

    `norm` decides how attention and feed-forward network, f, join the stream x: `"pre"` is
    `x + f(n(x))`, `"post"` the paper's `n(x + f(x))`, `"sandwich"` `x + n(f(n(x)))`, `"rezero"`
    `x + α f(x)`; for the others see `ResiDual` and `DeepNorm`. A stack of pre-norm or sandwich
    blocks needs a norm after the last.

    Args:
        attention: a layer called as `attention(query, value)`: those of
            `keras_attention.attention`, Keras's `MultiHeadAttention`, or your own.
        feed_forward: a layer called on one tensor, such as `FeedForward` or `MixtureOfExperts`.
        norm: a `Residual` such as `DeepNorm(num_layers=12)`, its name or its config.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"`, which has a scale alone, or
            `"rms_norm"` (Zhang and Sennrich, 2019).
        dropout: float, on the output of each branch.
        stochastic_depth: float, the share of examples in a batch that skip a branch in training
            (Huang et al., 2016).
        layer_scale: float, from which `LayerScale` starts, or None for none.
        epsilon: float, of the normalizations.
        remat: bool, whether training keeps none of the activations within the block, and computes
            them again for the gradients (Chen et al., 2016, *Training deep nets with sublinear
            memory cost*): less memory, more time, the same numbers, dropout included.

    Call arguments:
        inputs: (B, T, D); with `norm="resi_dual"` also a pair of them.
        mask: bool (B, T), True = a token; filled by Keras from the implicit mask.
        attention_mask: bool, True = may attend, (B, T, T) or as `attention` takes it.
        segment_ids: int (B, T), for packed documents; positions: int (T,) or (B, T). Both go to
            the attention as `segment_ids`, and as `query_positions` and `value_positions`.

    A call argument that the attention does not take is an error. Returns (B, T, D), or a pair of
    them, with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8, position="rotary"),
        feed_forward=ka.blocks.FeedForward(64, activation="geglu"),
        norm="sandwich",
    )
    assert block(np.ones((2, 5, 32))).shape == (2, 5, 32)
    ```
    """

    branches = {"_attention_branch": "attention", "_feed_forward_branch": "feed_forward"}
    inner_layers = ("feed_forward",)  # beside attention

    def __init__(
        self,
        attention,
        feed_forward,
        norm="pre",
        normalization="layer_norm",
        dropout=0.0,
        stochastic_depth=0.0,
        layer_scale=None,
        epsilon=1e-6,
        remat=False,
        **kwargs,
    ):
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"normalization={normalization!r}: expected one of {', '.join(NORMALIZATIONS)}."
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention = revive_layer("attention", attention)
        self.feed_forward = revive_layer("feed_forward", feed_forward)
        self.norm, self.normalization = residuals.get(norm), normalization
        self.dropout, self.stochastic_depth = dropout, stochastic_depth
        self.layer_scale, self.epsilon = layer_scale, epsilon
        self.remat = remat
        first = None
        for attribute, name in self.branches.items():
            setattr(self, attribute, self._make_branch(name, first))
            first = getattr(self, attribute) if first is None else first

    def _make_branch(self, name, first=None):
        """The layers around an inner one: norms, scale, dropouts; `first` is the first branch."""
        dtype = self.dtype_policy

        def normalize(place):
            return self._make_normalization(f"{name}_{place}")

        branch = self.norm.layers(normalize, first, dtype)
        if self.layer_scale is not None:
            branch["scale"] = LayerScale(self.layer_scale, dtype=dtype, name=f"{name}_scale")
        branch["dropout"] = keras.layers.Dropout(self.dropout, dtype=dtype)
        branch["skip"] = keras.layers.Dropout(
            self.stochastic_depth, noise_shape=(None, 1, 1), dtype=dtype
        )
        return branch

    def _make_normalization(self, name):
        make = NORMALIZATIONS[self.normalization]
        return make(epsilon=self.epsilon, dtype=self.dtype_policy, name=name)

    def build(self, input_shape):
        shape = self._stream_shape(input_shape)
        self._build_layers(shape, [(self.attention, shape)])

    def _build_layers(self, shape, attentions):
        """Builds what is not built; `attentions` are pairs (layer, shape of its values)."""
        attentions = [(layer, values) for layer, values in attentions if not layer.built]
        others = [getattr(self, name) for name in self.inner_layers]
        others = [layer for layer in others if not layer.built]
        for attention, values in attentions:
            build_attention(attention, shape, values)
        for layer in others:
            layer.build(shape)
        self.norm.initialize([attention for attention, _ in attentions], others)
        for attribute in self.branches:
            for layer in getattr(self, attribute).values():
                if not layer.built:
                    layer.build(shape)

    def _stream_shape(self, input_shape):
        """The shape of a stream, from that of the inputs."""
        if not isinstance(input_shape[0], (list, tuple)):
            return input_shape
        if len(input_shape) != self.norm.num_streams:
            raise ValueError(
                f"{type(self).__name__}(norm={self.norm!r}) has {self.norm.num_streams} "
                f"stream(s); it was called on {len(input_shape)} tensors. Pairs are for "
                "norm='resi_dual'; blocks of one stack share their norm."
            )
        return input_shape[0]

    @rematerializes
    def call(
        self,
        inputs,
        mask=None,
        attention_mask=None,
        segment_ids=None,
        positions=None,
        training=None,
    ):
        mask = self._padding_mask(inputs, mask)
        attend = self._self_attention(mask, attention_mask, segment_ids, positions, training)
        return self._add_branches(self.norm.start(inputs), attend, mask, training)

    def _add_branches(self, stream, attend, mask, training):
        """The block's figure: the stream after all branches; `attend` is self-attention of x."""
        feed = functools.partial(call_with_mask, self.feed_forward, mask=mask, training=training)
        stream = self._add_branch(stream, attend, self._attention_branch, training)
        return self._add_branch(stream, feed, self._feed_forward_branch, training)

    @staticmethod
    def _padding_mask(inputs, mask):
        """The padding mask, given or implicit; Keras fills in one for each stream."""
        if isinstance(mask, (list, tuple)):
            mask = mask[0]
        if mask is not None:
            return mask
        first = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        return keras_internals.get_mask(first)

    def _self_attention(self, mask, attention_mask, segment_ids, positions, training):
        """Self-attention as a function of x alone."""
        return functools.partial(
            call_attention,
            self.attention,
            training=training,
            query_mask=mask,
            value_mask=mask,
            attention_mask=attention_mask,
            segment_ids=segment_ids,
            query_positions=positions,
            value_positions=positions,
        )

    def _add_branch(self, stream, function, branch, training, step=1.0):
        """The stream after a branch that computes `function` and adds `step` times its result."""
        added = self.norm.after(function(self.norm.before(stream, branch)), branch)
        if "scale" in branch:
            added = branch["scale"](added)
        added = branch["dropout"](added, training=training)
        added = branch["skip"](added, training=training)
        if step != 1.0:
            added = ops.multiply(added, step)
        return pin_tokens(self.norm.add(stream, added, branch))

    def compute_mask(self, inputs, previous=None):
        mask = self._padding_mask(inputs, previous)
        return mask if self.norm.num_streams == 1 else (mask,) * self.norm.num_streams

    def compute_output_shape(self, input_shape):
        shape = tuple(self._stream_shape(input_shape))
        return shape if self.norm.num_streams == 1 else (shape,) * self.norm.num_streams

    def compute_output_spec(self, inputs, *args, **kwargs):
        first = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        check_rank(self.name, "inputs", first.shape)
        specs = tuple(
            keras.KerasTensor(first.shape, self.compute_dtype) for _ in range(self.norm.num_streams)
        )
        return specs[0] if self.norm.num_streams == 1 else specs

    def get_config(self):
        names = ("normalization", "dropout", "stochastic_depth", "layer_scale", "epsilon", "remat")
        return {
            **super().get_config(),
            "attention": serialize_inner(self.attention),
            **{name: serialize_inner(getattr(self, name)) for name in self.inner_layers},
            "norm": keras.saving.serialize_keras_object(self.norm),
            **{name: getattr(self, name) for name in names},
        }
