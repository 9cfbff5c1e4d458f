"""Multi-head attention: `keras.layers.MultiHeadAttention`, open to any part."""

import dataclasses

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention import arguments, axes, kernels, kv_cache
from keras_attention.attention.base import AttentionLayer, join_masks
from keras_attention.attention.head_structures import QK_NORMS, HeadStructures
from keras_attention.attention.kernels.axis_pieces import WholeAxis
from keras_attention.attention.projection import ProjectionOwner, copy_initializer, project
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(AttentionLayer, ProjectionOwner):
    """Multi-head attention (Vaswani et al., 2017, section 3.2.2), grouped or not, with any part.

    A drop-in for `keras.layers.MultiHeadAttention`: the same arguments, call, and weights in the
    same order, so `ours.set_weights(theirs.get_weights())` gives the same output. What differs:

    - A query that may attend to nothing gives exact zeros before the output projection.
    - The masks stay on the caller's tensors.
    - The symbolic scores of cross-attention have their true shape.
    - An `attention_mask` with a head axis and a `value_mask` are combined head by head, and heads
      of size 1 have a bias each. Keras 3.15 mixes up axes of equal sizes in these two.

    Args:
        num_heads: int, N. key_dim: int, H, the size of a head of queries and keys.
        value_dim: int, the size of a head of values. None is `key_dim`.
        dropout: float, the share of attention weights dropped in training. seed: int, for dropout.
        use_bias: bool, whether the projections have a bias.
        output_shape: int or tuple, the last axes of the output. None is the query's last axis.
        attention_axes: int or tuple, the axes attended over. None is all but batch and features.
        sliding_window: int w, short for `mask=Window(w)`: a query sees keys with |i - j| < w.
        flash_attention: True for the backend's flash attention, by the `"fused"` kernel. It is an
            error where that is impossible, as on TensorFlow. False for none, None where it is
            possible, unless `keras.config.disable_flash_attention()`.
        use_gate: bool, whether a sigmoid of the projected query multiplies the heads' outputs
            elementwise (Qiu et al., 2025).
        num_key_value_heads: int K that divides N (Ainslie et al., 2023): query head h attends with
            key and value head h // (N / K). None is N, 1 is multi-query attention.
        score, normalizer, mask, position: the parts, as in `AttentionLayer`.
        qk_norm: `"rms_norm"` (Qwen3, 2025), `"layer_norm"` (ViT-22B, Dehghani et al., 2023) or
            None. Normalizes queries and keys over H, after the projections and before `position`,
            with one learned scale (H,) for all query heads and one for all key heads.
        qk_norm_epsilon: float, of these norms.
        qkv_bias: bool, whether the projections of queries, keys and values have a bias (Qwen2,
            2024). None is as `use_bias`.
        key_bias: bool, whether that of keys has one (Radford et al., 2022). None is as `qkv_bias`.
        sink: bool, whether each head has a learned score in the softmax's denominator (gpt-oss,
            2025). It starts at 0, where `Softmax(plus_one=True)` fixes it.
        num_memory_slots: int M, learned keys and values without a position, which every query may
            attend to (Sukhbaatar et al., 2019), whatever the masks say. Needs `"dense"`.
        talking_heads: bool, whether learned (N, N) matrices mix the heads' scores before the
            normalizer and their weights after (Shazeer et al., 2020).
        implementation: name of a kernel, as in `AttentionLayer`.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint: as in Keras.

    Call arguments: those of `AttentionLayer`, the first ten as Keras's layer has them.

    With memory slots the weights are (B, N, T, S + M), the slots last. Several axes of a value are
    then one axis.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.MultiHeadAttention(
        num_heads=4,
        key_dim=6,
        num_key_value_heads=2,
        score="cosine",
        mask=ka.masks.Causal() & ka.masks.Window(3),
        position="rotary",
    )
    output, weights = layer(x, x, return_attention_scores=True)
    assert output.shape == (2, 7, 24) and weights.shape == (2, 4, 7, 7)
    ```
    """

    remembers_segments = True
    own_arguments = (
        *("num_heads", "key_dim", "value_dim", "use_bias", "attention_axes", "use_gate"),
        *("num_key_value_heads", "qk_norm", "qk_norm_epsilon", "qkv_bias", "key_bias", "sink"),
        *("num_memory_slots", "talking_heads", "flash_attention", "activity_regularizer"),
        *("kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer"),
        *("kernel_constraint", "bias_constraint"),
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_shape=None,
        attention_axes=None,
        sliding_window=None,
        flash_attention=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate=False,
        seed=None,
        *,
        num_key_value_heads=None,
        qk_norm=None,
        qk_norm_epsilon=1e-6,
        qkv_bias=None,
        key_bias=None,
        sink=False,
        num_memory_slots=0,
        talking_heads=False,
        **kwargs,
    ):
        arguments.check_positive(
            ("value_dim", "sliding_window", "num_key_value_heads"),
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            sliding_window=sliding_window,
            num_key_value_heads=num_key_value_heads,
        )
        arguments.check_groups(num_heads, num_key_value_heads)
        shared = {"dropout": dropout, "seed": seed, "activity_regularizer": activity_regularizer}
        super().__init__(**shared, **kwargs)
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.num_key_value_heads = num_key_value_heads or num_heads
        self.use_bias, self.use_gate = use_bias, use_gate
        self._output_shape = arguments.as_shape(output_shape)
        self.attention_axes = arguments.as_axes(attention_axes)
        self._sliding_window = sliding_window
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.qk_norm, self.qk_norm_epsilon, self.sink = qk_norm, qk_norm_epsilon, sink
        self.qkv_bias, self.key_bias = qkv_bias, key_bias
        self.num_memory_slots, self.talking_heads = num_memory_slots, talking_heads
        checks.check_choice(self, "qk_norm", QK_NORMS)
        checks.check_choice(self, "sink", (True, False))
        checks.check_choice(self, "qkv_bias", (None, True, False))
        checks.check_choice(self, "key_bias", (None, True, False))
        checks.check_choice(self, "talking_heads", (True, False))
        checks.check_whole_numbers(self, "num_memory_slots", least=0)
        if sink:
            arguments.check_sink(self.normalizer)
        if self.hands_on_scores or num_memory_slots:
            self.implementation = arguments.require_dense(self.implementation)
        self.flash_attention = flash_attention
        self._flash_attention = arguments.use_flash(flash_attention, self.implementation, dropout)

    def build(self, query_shape, value_shape, key_shape=None):
        query_shape, value_shape = tuple(query_shape), tuple(value_shape)
        key_shape = tuple(key_shape or value_shape)
        arguments.check_same_keys(value_shape, key_shape)
        axes.resolve_axes(self.attention_axes, len(query_shape))  # an error where they do not exist
        groups = self.num_key_value_heads
        query_heads, key_heads = ((n, self.key_dim) for n in (self.num_heads, groups))
        value_heads = (groups, self.value_dim)
        output_heads = (self.num_heads, self.value_dim)
        self._query_dense = self._projection(query_heads, query_shape[-1:], "query", self.qkv_bias)
        key_bias = self.qkv_bias if self.key_bias is None else self.key_bias
        self._key_dense = self._projection(key_heads, key_shape[-1:], "key", key_bias)
        if self.use_gate:  # between key and value, where Keras's layer has its weights
            self._gate_dense = self._projection(
                output_heads, query_shape[-1:], "gate", activation="sigmoid"
            )
        self._value_dense = self._projection(value_heads, value_shape[-1:], "value", self.qkv_bias)
        self._output_dense = self._projection(
            self._output_shape or query_shape[-1:], output_heads, "attention_output"
        )
        self.build_parts((query_shape[0], None, *query_heads))
        self._structures = None  # after the weights that Keras's layer has too
        if self.qk_norm or self.sink or self.num_memory_slots or self.talking_heads:
            self._structures = self._make_structures()
            self._structures.build()

    def _make_structures(self):
        return HeadStructures(
            (self.num_heads, self.key_dim),
            (self.num_key_value_heads, self.value_dim),
            self.qk_norm,
            self.sink,
            self.num_memory_slots,
            self.talking_heads,
            epsilon=self.qk_norm_epsilon,
            dtype=self.dtype_policy,
            name="structures",
        )

    def _projection(self, output_shape, input_shape, name, use_bias=None, **kwargs):
        """Makes and builds a projection from the axes `input_shape` to the axes `output_shape`."""
        use_bias = self.use_bias if use_bias is None else use_bias
        return project(
            self,
            name,
            input_shape,
            output_shape,
            use_bias,
            bias_initializer=copy_initializer(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self.activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            **kwargs,
        )

    def project_query(self, query):
        query = self._query_dense(query)
        return self._structures.normalize_query(query) if self._structures else query

    def project_key_value(self, value, key, visibility):
        """Return keys (B, S, K, H), not rotated, and values (B, S, K, Hv)."""
        key = self._key_dense(key)
        if self._structures:
            key = self._structures.normalize_key(key)
        return {"key": key, "value": self._value_dense(value)}

    @property
    def cache_shapes(self):
        heads = self.num_key_value_heads
        return {"key": (heads, self.key_dim), "value": (heads, self.value_dim)}

    def project_for_cache(self, value, key, visibility):
        if self._is_overridden:  # an override gets keys that are not rotated
            heads = self.project_key_value(value, key, visibility)
            return kv_cache.rotate_and_transpose(None, heads, visibility.key_positions)
        return super().project_for_cache(value, key, visibility)

    def make_equation(self, training=False):
        equation = super().make_equation(training)
        if training and self._is_overridden:  # which computes dropout itself, if there is any
            equation = dataclasses.replace(equation, dropout=self.drop_weights)
        if not (self.sink or self.talking_heads):
            return equation
        structures = self._structures if self.built else self._make_structures()
        return dataclasses.replace(
            equation, normalizer=structures.wrap_normalizer(equation.normalizer)
        )

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        key, value = heads["key"], heads["value"]
        how = return_weights, implementation
        if not self._is_overridden:
            parts = self._add_slots(query, value, equation, visibility, implementation)
            return self.attend(query, key, *parts, *how)
        if implementation == kernels.CACHED:  # as Keras gives them, by length, and all masks as one
            key, value = kv_cache.heads_first(key), kv_cache.heads_first(value)
        visibility = visibility.hide_padded_queries()
        i, j = visibility.positions(WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[1]))
        mask = visibility.allows(i, j, visibility.tensor)
        training, positions = equation.dropout is not None, {}
        if visibility.query_positions is not None:
            positions["query_positions"] = visibility.query_positions
        if visibility.key_positions is not None:
            positions["key_positions"] = visibility.key_positions
        return self._compute_attention(
            query, key, value, mask, training, return_weights, **positions
        )

    def _add_slots(self, query, value, equation, visibility, implementation):
        """Return values, equation and visibility with the memory slots, if there are any."""
        if not self.num_memory_slots:
            return value, equation, visibility
        slots = self._structures.slots
        value = slots.append_to(value, implementation == kernels.CACHED)
        # A query that is padding sees the slots.
        return value, slots.join(equation, query), visibility.hide_padded_queries()

    def project_output(self, output, query):
        if self.use_gate:
            output = ops.multiply(output, self._gate_dense(query))
        return self._output_dense(output)

    def mask_part(self, use_causal_mask=False):
        window = masks.Window(self._sliding_window) if self._sliding_window else None
        return join_masks(self.mask, window, masks.Causal() if use_causal_mask else None)

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
        query_positions=None,
        key_positions=None,
    ):
        """Compute attention between the projections. A subclass may override it, as Keras's.

        query (B, T, N, H), key (B, S, K, H), value (B, S, K, Hv). `attention_mask` broadcasts to
        (B, N, T, S), a missing N included. An override finds all masks of the call in it.
        Returns the output (B, T, N, Hv) and the weights (B, N, T, S), with memory slots S + M.
        """
        if attention_mask is not None and len(attention_mask.shape) == 3:
            attention_mask = ops.expand_dims(attention_mask, axis=1)
        visibility = Visibility(
            self.mask_part(use_causal_mask),
            attention_mask,
            query_positions=query_positions,
            key_positions=key_positions,
        )
        equation = self.make_equation(training and self.dropout)
        parts = self._add_slots(query, value, equation, visibility, self.implementation)
        return self.attend(query, key, *parts, return_attention_scores, self.implementation)

    @property
    def _is_overridden(self):
        """Whether a subclass computes by its own `_compute_attention`, as it may with Keras's.

        An override takes all masks as one (B, N, T, S) tensor, which no other call should pay for.
        """
        return type(self)._compute_attention is not MultiHeadAttention._compute_attention

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        arguments.check_same_keys(tuple(value_shape), tuple(key_shape or value_shape))
        query_shape = tuple(query_shape)
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    @property
    def query_dense(self):
        return self._query_dense

    @property
    def key_dense(self):
        return self._key_dense

    @property
    def value_dense(self):
        return self._value_dense

    @property
    def output_dense(self):
        return self._output_dense

    def get_config(self):
        return {
            **super().get_config(),
            "output_shape": self._output_shape,
            "sliding_window": self._sliding_window,
        }
