"""`EncoderBlock`: attention and a feed-forward network, each with a residual and norms."""

import functools

import keras
from keras import ops

from keras_attention.attention.inputs import check_rank
from keras_attention.blocks import residuals
from keras_attention.blocks.inner_layers import (
    build_attention,
    call_attention,
    call_with_mask,
    find_mask,
    revive_layer,
    serialize_inner,
)
from keras_attention.blocks.normalization import NORMALIZATIONS, LayerScale
from keras_attention.blocks.rematerialization import rematerializes
from keras_attention.core import checks
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.token_layout import pin_tokens


@keras.saving.register_keras_serializable(package="keras_attention")
class EncoderBlock(OwnArguments, IntegerInputs, keras.layers.Layer):
    """A Transformer encoder block (Vaswani et al., 2017, section 3.1).

    The block has two branches f, the attention and the feed-forward network. `norm` decides where
    the norm n goes when a branch is added to x: `"pre"` is `x + f(n(x))`, `"post"` is `n(x + f(x))`
    as in the paper, `"sandwich"` is `x + n(f(n(x)))`, and `"rezero"` is `x + α f(x)`. See also
    `ResiDual` and `DeepNorm`. A stack of `"pre"` or `"sandwich"` blocks needs one more norm after
    the last block.

    Args:
        attention: a layer called as `attention(query, value)`: a layer of
            `keras_attention.attention`, Keras's `MultiHeadAttention`, or your own.
        feed_forward: a layer called on one tensor, such as `FeedForward` or `MixtureOfExperts`.
        norm: a `Residual` such as `DeepNorm(num_layers=12)`, its name or its config.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"` (Zhang and Sennrich,
            2019).
        dropout: float, the dropout rate for the output of each branch.
        stochastic_depth: float, the fraction of examples that skip a branch in training (Huang et
            al., 2016).
        layer_scale: float, the initial value of a `LayerScale`, which multiplies each feature of a
            branch's output by a learned factor. None for no such layer.
        epsilon: float, a small number that the norms add before they divide.
        remat: bool, whether training recomputes the activations inside the block when it computes
            gradients (Chen et al., 2016, *Training deep nets with sublinear memory cost*). This
            takes less memory and more time. The results do not change.

    Call arguments:
        inputs: (B, T, D), or with `norm="resi_dual"` a pair of such tensors.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.
        attention_mask: bool (B, T, T), True = query may attend to key, or another shape that
            `attention` accepts.
        segment_ids: int (B, T), the number of each token's document, if a row holds several.
        positions: int (T,) or (B, T), the positions of the tokens. None is 0, 1, 2, ...

    The block passes `segment_ids` to the attention, and `positions` as `query_positions` and
    `value_positions`. If the attention does not have such an argument, passing it to the block is
    an error.

    Returns (B, T, D), or with `norm="resi_dual"` a pair of such tensors, with the mask of the
    inputs.

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
    inner_layers = ("feed_forward",)  # in addition to the attention
    own_arguments = (
        *("norm", "normalization", "dropout", "stochastic_depth", "layer_scale", "epsilon"),
        "remat",
    )

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
        super().__init__(**kwargs)
        self.attention = revive_layer("attention", attention)
        self.feed_forward = revive_layer("feed_forward", feed_forward)
        self.norm, self.normalization = residuals.get(norm), normalization
        checks.check_choice(self, "normalization", NORMALIZATIONS)
        self.dropout, self.stochastic_depth = dropout, stochastic_depth
        self.layer_scale, self.epsilon, self.remat = layer_scale, epsilon, remat
        first = None
        for attribute, name in self.branches.items():
            branch = self._make_branch(name, first)
            setattr(self, attribute, branch)
            first = first or branch

    def _make_branch(self, name, first):
        """Return a dict {name: new layer} with the norms, the scale and the dropouts of a branch.

        Args:
            name: str, the name of the branch, such as `"attention"`.
            first: the dict of the block's first branch, whose layers this branch may share. None
                for the first branch itself.
        """
        dtype = self.dtype_policy
        branch = self.norm.layers(
            lambda place: self._make_normalization(f"{name}_{place}"), first, dtype
        )
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
        """Build all layers that are not built yet.

        `shape` is (B, T, D), and `attentions` a list of (attention layer, shape of its value).
        """
        attentions = [(layer, values) for layer, values in attentions if not layer.built]
        inner = [getattr(self, name) for name in self.inner_layers]
        inner = [layer for layer in inner if not layer.built]
        for attention, values in attentions:
            build_attention(attention, shape, values)
        for layer in inner:
            layer.build(shape)
        self.norm.initialize([attention for attention, _ in attentions], inner)
        for attribute in self.branches:
            for layer in getattr(self, attribute).values():
                if not layer.built:
                    layer.build(shape)

    def _stream_shape(self, input_shape):
        """Return the shape (B, T, D) of a block's input, which may be a pair (`ResiDual`)."""
        if isinstance(input_shape[0], (list, tuple)):
            if len(input_shape) != self.norm.num_streams:
                raise ValueError(
                    f"{type(self).__name__}(norm={self.norm!r}) was called on {len(input_shape)} "
                    f"tensors instead of {self.norm.num_streams}. Pairs are for norm='resi_dual'. "
                    "Give all blocks of a stack the same norm."
                )
            input_shape = input_shape[0]
        check_rank(self.name, "inputs", input_shape)
        return input_shape

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
        if mask is None or isinstance(mask, (list, tuple)):
            mask = find_mask(inputs, mask)
        attend = functools.partial(
            call_attention,
            self.attention,
            training=training,
            query_mask=mask,
            attention_mask=attention_mask,
            segment_ids=segment_ids,
            query_positions=positions,
        )
        return self._add_branches(self.norm.start(inputs), attend, mask, training)

    def _add_branches(self, stream, attend, mask, training):
        """Return x plus the outputs of all branches of the block.

        Args:
            stream: x, the tensor that runs through all blocks, or a pair of tensors with
                `ResiDual`.
            attend: function from the normalized x to the output of the attention.
            mask: bool (B, T), True = a token, or None.
            training: bool, whether dropout is active.
        """
        feed = functools.partial(call_with_mask, self.feed_forward, mask=mask, training=training)
        stream = self._add_branch(stream, attend, self._attention_branch, training)
        return self._add_branch(stream, feed, self._feed_forward_branch, training)

    def _add_branch(self, stream, function, branch, training, step=1.0):
        """Return x plus the output of a branch, with norms, dropout and scale.

        Args:
            stream: x, the tensor that runs through all blocks, or a pair of tensors with
                `ResiDual`.
            function: function from the normalized x to the output of the branch.
            branch: the dict of layers from `_make_branch`.
            training: bool, whether dropout is active.
            step: float, the factor of the output.
        """
        added = self.norm.after(function(self.norm.before(stream, branch)), branch)
        if "scale" in branch:
            added = branch["scale"](added)
        added = branch["dropout"](added, training=training)
        added = branch["skip"](added, training=training)
        if step != 1.0:
            added = ops.multiply(added, step)
        return pin_tokens(self.norm.add(stream, added, branch))

    def compute_mask(self, inputs, previous=None):
        mask = find_mask(inputs, previous)
        return mask if self.norm.num_streams == 1 else (mask,) * self.norm.num_streams

    def compute_output_shape(self, input_shape):
        shape = tuple(self._stream_shape(input_shape))
        return shape if self.norm.num_streams == 1 else (shape,) * self.norm.num_streams

    def get_config(self):
        names = ("attention", *self.inner_layers)
        return super().get_config() | {name: serialize_inner(getattr(self, name)) for name in names}
