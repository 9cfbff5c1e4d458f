"""Multi-head attention, a replacement for `keras.layers.MultiHeadAttention`."""

import dataclasses
import operator

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
    """Multi-head attention with any parts (Vaswani et al., 2017, section 3.2.2).

    For each head, `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`.

    It replaces `keras.layers.MultiHeadAttention`. It has the same arguments, is called in the same
    way, and has the same weights in the same order: after `ours.set_weights(theirs.get_weights())`
    both layers return the same output. The differences are:

    - For a query that sees no key, the output is exactly zero before the output projection.
    - Keras's implicit masks on the caller's tensors are not removed.
    - In cross-attention, symbolic attention scores have the correct shape.
    - Keras 3.15 confuses axes of equal sizes if an `attention_mask` has a heads axis and there is a
      `value_mask`, or if biases belong to heads of size 1. This layer does not.

    Args:
        num_heads: int, N, the number of heads.
        key_dim: int, H, the size of a query or key head.
        value_dim: int, the size of a value head. None means `key_dim`.
        dropout: float, the fraction of attention weights set to 0 in training.
        seed: int, the seed of dropout, or None.
        use_bias: bool, whether the projections have a bias.
        output_shape: int or tuple, the last axes of the output. None means the query's last axis.
        attention_axes: int or tuple, the axes to attend over. None means all axes but the batch and
            the features.
        sliding_window: int w, short for `mask=Window(w)`: a query sees keys with |i - j| < w.
        flash_attention: True requires the backend's flash attention, which the `"fused"` kernel
            uses, and raises an error if it is not available, as on TensorFlow. False excludes it.
            None uses it if possible, unless `keras.config.disable_flash_attention()` was called.
        use_gate: bool, whether to multiply the outputs of the heads by a sigmoid of the projected
            query (Qiu et al., 2025).
        num_key_value_heads: int K, a divisor of N, for grouped-query attention (Ainslie et al.,
            2023): query head h uses key and value head h // (N / K). None means N. 1 is multi-query
            attention.
        score, normalizer, mask, position: the parts of the equation, each an object of
            `keras_attention.scores`, `normalizers`, `masks` or `positions`, its name or its config.
            None means no mask and no position.
        qk_norm: the normalization of queries and keys over H, before `position` rotates them:
            `"rms_norm"` (Qwen3, 2025), `"layer_norm"` (ViT-22B, Dehghani et al., 2023) or None.
            All query heads share one learned scale (H,), and all key heads share another.
        qk_norm_epsilon: float, a small number that these norms add before they divide.
        qkv_bias: bool, whether the projections of queries, keys and values have a bias (Qwen2,
            2024). None means `use_bias`.
        key_bias: bool, whether the projection of keys has a bias (Radford et al., 2022). None means
            `qkv_bias`.
        sink: bool, whether each head has a learned score in the softmax's denominator (gpt-oss,
            2025). It starts at 0, which is the same as `Softmax(plus_one=True)`.
        num_memory_slots: int M, the number of learned keys and values that every query sees
            (Sukhbaatar et al., 2019). Slots have no position, and need the `"dense"` kernel.
        talking_heads: bool, whether learned (N, N) matrices mix the heads' scores before the
            normalizer and their weights after it (Shazeer et al., 2020).
        implementation: name of a kernel, such as `"chunked"`. None chooses the kernel that suits
            the call.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint: as in Keras.

    Call arguments: those of `AttentionLayer`. The first ten are those of Keras's layer.

    With memory slots, the returned weights are (B, N, T, S + M), and the slots are last. If there
    are several attended axes too, the value's axes are merged into this last axis.

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

    joins_segments = True
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
        if self.adds_previous_scores or num_memory_slots:
            self.implementation = arguments.require_dense(self.implementation)
        self.flash_attention = flash_attention
        self._flash_attention = arguments.use_flash(flash_attention, self.implementation, dropout)

    def build(self, query_shape, value_shape, key_shape=None):
        query_shape, value_shape = tuple(query_shape), tuple(value_shape)
        key_shape = tuple(key_shape or value_shape)
        arguments.check_same_keys(value_shape, key_shape)
        axes.resolve_axes(self.attention_axes, len(query_shape))  # refuses unknown axes
        groups = self.num_key_value_heads
        query_heads, key_heads = ((n, self.key_dim) for n in (self.num_heads, groups))
        value_heads = (groups, self.value_dim)
        output_heads = (self.num_heads, self.value_dim)
        self._query_dense = self._projection(query_heads, query_shape[-1:], "query", self.qkv_bias)
        key_bias = self.qkv_bias if self.key_bias is None else self.key_bias
        self._key_dense = self._projection(key_heads, key_shape[-1:], "key", key_bias)
        if self.use_gate:  # between key and value, for the same order of weights as in Keras
            self._gate_dense = self._projection(
                output_heads, query_shape[-1:], "gate", activation="sigmoid"
            )
        self._value_dense = self._projection(value_heads, value_shape[-1:], "value", self.qkv_bias)
        self._output_dense = self._projection(
            self._output_shape or query_shape[-1:], output_heads, "attention_output"
        )
        self.build_parts((query_shape[0], None, *query_heads))
        self._structures = None  # after the weights of Keras's layer
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
        """Build a dense layer that maps the trailing axes `input_shape` to `output_shape`.

        `name` is the name of the layer. `use_bias` is a bool, or None for that of this layer.
        """
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
        """Return a dict of the unrotated keys (B, S, K, H) and the values (B, S, K, Hv).

        The inputs `key` and `value` are (B, S, D). `visibility`, the masks of the call, is not
        used.
        """
        key = self._key_dense(key)
        if self._structures:
            key = self._structures.normalize_key(key)
        return {"key": key, "value": self._value_dense(value)}

    @property
    def cache_shapes(self):
        heads = self.num_key_value_heads
        return {"key": (heads, self.key_dim), "value": (heads, self.value_dim)}

    def project_for_cache(self, value, key, visibility):
        if self._is_overridden:  # `_compute_attention` rotates the keys itself
            heads = self.project_key_value(value, key, visibility)
            return kv_cache.rotate_and_transpose(None, heads, visibility.key_positions)
        return super().project_for_cache(value, key, visibility)

    def make_equation(self, training=False):
        equation = super().make_equation(training)
        if training and self._is_overridden:  # `_compute_attention` applies dropout itself
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
        if implementation == kernels.CACHED:  # Keras's layout is (B, S, K, H)
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
        """Add the memory slots (learned keys and values), if any, to values and equation."""
        if not self.num_memory_slots:
            return value, equation, visibility
        slots = self._structures.slots
        value = slots.append_to(value, implementation == kernels.CACHED)
        # Padded queries are hidden, because they would see the slots.
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
        """Compute attention between the projections. A subclass may override it, as in Keras.

        Args:
            query: (B, T, N, H).
            key: (B, S, K, H).
            value: (B, S, K, Hv).
            attention_mask: (B, N, T, S) or (B, T, S), axes of size 1 allowed. When an override is
                called, it combines all masks of the call.
            training, return_attention_scores, use_causal_mask: bool, as in the call.
            query_positions, key_positions: int (T,) or (B, T), and int (S,) or (B, S). None means
                0, 1, 2, ...

        Returns:
            The output (B, T, N, Hv), and the weights (B, N, T, S), or (B, N, T, S + M) with memory
            slots.
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
        """Return whether a subclass overrides `_compute_attention`."""
        return type(self)._compute_attention is not MultiHeadAttention._compute_attention

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        arguments.check_same_keys(tuple(value_shape), tuple(key_shape or value_shape))
        query_shape = tuple(query_shape)
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    query_dense = property(operator.attrgetter("_query_dense"))
    key_dense = property(operator.attrgetter("_key_dense"))
    value_dense = property(operator.attrgetter("_value_dense"))
    output_dense = property(operator.attrgetter("_output_dense"))

    def get_config(self):
        return {
            **super().get_config(),
            "output_shape": self._output_shape,
            "sliding_window": self._sliding_window,
        }
