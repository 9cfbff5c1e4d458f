"""Multi-head attention: `keras.layers.MultiHeadAttention`, open to any part."""

import keras
from keras import ops

from keras_attention import checks, masks
from keras_attention.attention import (
    arguments,
    axes,
    incremental,
    masking,
    memory,
    parts,
    recording,
)
from keras_attention.attention.attend import attend
from keras_attention.attention.call_mask import call_mask
from keras_attention.attention.head_norm import QK_NORMS
from keras_attention.attention.head_structures import HeadStructures
from keras_attention.attention.project import copy_of, project
from keras_attention.sharing import config_of_shared


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention (Vaswani et al., 2017, section 3.2.2), grouped or not, with any part.

    A drop-in for `keras.layers.MultiHeadAttention`: the same arguments (but `flash_attention`), the
    same call, the same weights in the same order, so `ours.set_weights(theirs.get_weights())` gives
    the same output. Some things differ, on purpose: a query that may attend to nothing gives exact
    zeros before the output projection; the masks stay on the caller's tensors; the symbolic scores
    of cross-attention have their true shape; an `attention_mask` with a head axis and a
    `value_mask` are combined head by head; and with heads of size 1 each gets its own bias (in
    Keras 3.15 the last two mix up axes of equal sizes).

    Args:
        num_heads: int, N.
        key_dim: int, H, the size of a head of queries and keys.
        value_dim: int, the size of a head of values; None is `key_dim`.
        dropout: float, the share of attention weights dropped in training. The others grow by
            1 / (1 - dropout), so that rows sum to one on average; what is masked stays zero.
        use_bias: bool, whether the projections have a bias.
        output_shape: int or tuple, the last axes of the output; None is the query's last axis.
        attention_axes: int or tuple, the axes attended over; None is all but batch and features.
        sliding_window: int w, a query sees keys with |i - j| < w; short for `mask=Window(w)`.
        use_gate: bool, a sigmoid of the query, projected, multiplies the heads' outputs, number by
            number (Qiu et al., 2025).
        seed: int, for dropout.
        num_key_value_heads: int K that divides N (Ainslie et al., 2023): query head h attends with
            key and value head h // (N / K). None is N; 1 is multi-query attention.
        score: a part of `keras_attention.scores`, its name or its config.
        normalizer: a part of `keras_attention.normalizers`, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None.
        position: a part of `keras_attention.positions` that rotates queries and keys or biases
            scores, its name, its config, a list of them, or None.
        qk_norm: `"rms_norm"` (Qwen3, 2025), `"layer_norm"` (ViT-22B, Dehghani et al., 2023) or
            None. Normalizes queries and keys over H, after the projections and before `position`,
            with one learned scale (H,) for the queries of all heads and one for the keys.
        sink: bool, a learned score for each head in the softmax's denominator (gpt-oss, 2025): a
            head may attend to nothing much. Starting at 0, which `Softmax(plus_one=True)` fixes.
        num_memory_slots: int M, learned keys and values that every query may attend to
            (Sukhbaatar et al., 2019), whatever the masks say, and that have no position.
        talking_heads: bool, learned (N, N) matrices mix the heads' scores before the normalizer
            and their weights after (Shazeer et al., 2020).
        kernel: name of the way it is computed: `"dense"`, `"fused"`, `"banded"` or `"chunked"`, all
            equal; None picks one by the rule of `keras_attention.attention.choose`, of which memory
            slots leave the dense one.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint: as in Keras.

    Call arguments:
        query: (B, T, D), or (B, dims..., D) with `attention_axes`.
        value: (B, S, D). key: (B, S, D), default `value`.
        query_mask: bool (B, T). value_mask, key_mask: bool (B, S). Filled by Keras from the
            implicit masks of the tensors; True = a token, False = padding.
        attention_mask: bool, True = may attend: (B, T, S), or anything that broadcasts to
            (B, N, T, S) with missing axes in front of T.
        segment_ids: int (B, T), value_segment_ids: int (B, S), for packed documents: tokens see
            tokens of their own segment, and segment 0 is padding. The second defaults to the first.
        query_positions: int (T,) or (B, T), value_positions: int (S,) or (B, S): where the tokens
            are, for `mask` and `position`. Default: 0, 1, 2, ...
        return_attention_scores: bool, whether to return the weights (B, N, T, S) too, as they are
            before dropout. With memory slots it is (B, N, T, S + M): column j is key j, and the
            slots come last; a value of several axes is then one axis.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        training: bool, whether dropout is active.
        score: a part that scores in the place of the layer's in this call; for subclasses.

    Masks that are given together must all allow a pair, but hide no memory slot. The output carries
    the query's mask.

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

    _dense_only = False  # whether a subclass needs what only the dense kernel does

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
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        qk_norm=None,
        sink=False,
        num_memory_slots=0,
        talking_heads=False,
        kernel=None,
        **kwargs,
    ):
        arguments.check_positive(num_heads=num_heads, key_dim=key_dim)
        arguments.check_positive_or_none(
            value_dim=value_dim,
            sliding_window=sliding_window,
            num_key_value_heads=num_key_value_heads,
        )
        arguments.check_groups(num_heads, num_key_value_heads)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.supports_masking = True
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.num_key_value_heads = num_key_value_heads or num_heads
        self.dropout, self.seed = dropout, seed
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
        self.score = parts.score(score, self.dtype_policy)
        self.normalizer = parts.normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = parts.position(position, self.dtype_policy)
        self.qk_norm, self.sink = qk_norm, sink
        self.num_memory_slots, self.talking_heads = num_memory_slots, talking_heads
        checks.one_of(self, "qk_norm", QK_NORMS)
        checks.one_of(self, "sink", (True, False))
        checks.one_of(self, "talking_heads", (True, False))
        checks.whole(self, "num_memory_slots", least=0)
        if sink:
            arguments.check_sink(self.normalizer)
        self.kernel = arguments.kernel(kernel, self._dense_only or num_memory_slots)

    def build(self, query_shape, value_shape, key_shape=None):
        query_shape, value_shape = tuple(query_shape), tuple(value_shape)
        key_shape = tuple(key_shape or value_shape)
        arguments.check_same_keys(value_shape, key_shape)
        self._axes = axes.resolve(self.attention_axes, len(query_shape))
        query_heads = (self.num_heads, self.key_dim)
        key_heads = (self.num_key_value_heads, self.key_dim)
        value_heads = (self.num_key_value_heads, self.value_dim)
        output_heads = (self.num_heads, self.value_dim)
        self._query_dense = self._projection(query_heads, query_shape[-1:], "query")
        self._key_dense = self._projection(key_heads, key_shape[-1:], "key")
        if self.use_gate:  # between key and value, where Keras's layer has its weights
            self._gate_dense = self._projection(
                output_heads, query_shape[-1:], "gate", activation="sigmoid"
            )
        self._value_dense = self._projection(value_heads, value_shape[-1:], "value")
        self._output_dense = self._projection(
            self._output_shape or query_shape[-1:], output_heads, "attention_output"
        )
        self._dropout_layer = None
        if self.dropout:
            self._dropout_layer = keras.layers.Dropout(
                self.dropout, seed=self.seed, dtype=self.dtype_policy
            )
        self._structures = None  # after the weights that Keras's layer has too
        if self.qk_norm or self.sink or self.num_memory_slots or self.talking_heads:
            self._structures = HeadStructures(
                query_heads,
                value_heads,
                self.qk_norm,
                self.sink,
                self.num_memory_slots,
                self.talking_heads,
                dtype=self.dtype_policy,
                name="structures",
            )
            self._structures.build()
        batch = query_shape[0]
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            heads = ((batch, None, *query_heads), (batch, None, *query_heads))
            self.score.build(*heads)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build((batch, None, *query_heads))

    def _projection(self, output_shape, input_shape, name, **kwargs):
        """Makes and builds a projection from the axes `input_shape` to the axes `output_shape`."""
        return project(
            self,
            name,
            input_shape,
            output_shape,
            self.use_bias,
            bias_initializer=copy_of(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self.activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            **kwargs,
        )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        segment_ids=None,
        value_segment_ids=None,
        query_positions=None,
        value_positions=None,
        score=None,
    ):
        key = value if key is None else key
        packed = {"segment_ids": segment_ids, "value_segment_ids": value_segment_ids}
        past = memory.past(self, query, value, key, value_mask, key_mask, **packed)
        if past is not None:
            value_mask, key_mask = past.mask(query, value_mask, key_mask), None
            attention_mask = past.widen(attention_mask, query)
            where = past.positions(query, query_positions, value_positions)
            query_positions, value_positions = where
            value = key = past.join(query)
        queries, keys, values = (axes.to_sequences(x, self._axes) for x in (query, key, value))
        where = {"query_positions": query_positions, "key_positions": value_positions}
        where = {name: given for name, given in where.items() if given is not None}
        query_heads = self._query_dense(queries)
        if self._structures:
            query_heads = self._structures.normalize_query(query_heads)
        # A part tells a kernel more than a tensor; overrides as Keras's own expect the tensor.
        overridden = type(self)._compute_attention is not MultiHeadAttention._compute_attention
        ours = {} if overridden else {"use_causal_mask": use_causal_mask}
        structure = masking.structure(self, use_causal_mask)
        tokens = masking.both(value_mask, key_mask)
        place = None
        if 1 in self._axes:
            given = {"attention_mask": attention_mask, "value_positions": value_positions, **packed}
            place = incremental.open_place(
                self, query, value, structure, self._kept, tokens, **given
            )
        if place is None:
            key_heads, value_heads = self._key_value_heads(keys, values)
        else:
            key_heads, value_heads, where, value_mask = self._recall(
                place, query, keys, values, structure, tokens, query_positions, overridden
            )
            key_mask, ours = None, ours if overridden else {**ours, "cached": True}
        if ours and query_mask is not None and not self.num_memory_slots:
            ours["query_mask"] = axes.to_sequences(query_mask, self._axes, features=0)
            query_mask = None
        padding = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask}
        output, weights = self._compute_attention(
            query_heads,
            key_heads,
            value_heads,
            masks.all_of(
                call_mask(query, self._axes, attention_mask=attention_mask, **padding, **packed),
                masking.causal(queries, keys, **where) if use_causal_mask and overridden else None,
            ),
            training,
            return_attention_scores,
            **(where if score is None else {**where, "score": score}),
            **ours,
        )
        if self.use_gate:
            output = ops.multiply(output, self._gate_dense(queries))
        output = axes.from_sequences(self._output_dense(output), query, self._axes)
        recording.record(self, weights)
        if return_attention_scores:
            return output, axes.weights_from_sequences(
                weights, query, value, self._axes, self.num_memory_slots
            )
        return output

    @property
    def _kept(self):
        """What a cache keeps of a token."""
        heads = self.num_key_value_heads
        return {"key": (heads, self.key_dim), "value": (heads, self.value_dim)}

    def _key_value_heads(self, keys, values):
        """(B, S, K, H) and (B, S, K, Hv), not rotated."""
        key_heads = self._key_dense(keys)
        if self._structures:
            key_heads = self._structures.normalize_key(key_heads)
        return key_heads, self._value_dense(values)

    def _recall(self, place, query, keys, values, mask, tokens, query_positions, overridden):
        """All that there is to attend to, as a cache keeps it, where it is, and its padding.

        An overridden `_compute_attention` gets it as it knows it: (B, S, K, H), not rotated.
        """

        def heads(positions):
            key_heads, value_heads = self._key_value_heads(keys, values)
            if not overridden and self.position is not None:
                key_heads = self.position.rotate_key(key_heads, positions)
            new = {"key": key_heads, "value": value_heads}
            return {name: incremental.heads_first(x) for name, x in new.items()}

        found, i, j, tokens = incremental.recall(
            place, heads, query, values, mask, tokens, query_positions
        )
        key_heads, value_heads = found["key"], found["value"]
        if overridden:
            key_heads, value_heads = map(incremental.heads_first, (key_heads, value_heads))
        return key_heads, value_heads, {"query_positions": i, "key_positions": j}, tokens

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
        score=None,
        cached=False,
        **where,
    ):
        """The attention between the projections; subclasses override it, as they do Keras's.

        query (B, T, N, H), key (B, S, K, H), value (B, S, K, Hv), or, `cached`, as `attend` takes
        them from a cache; `attention_mask` broadcasts to (B, N, T, S), a missing N included;
        `score` takes the place of the layer's, and is called once. Returns output (B, T, N, Hv)
        and weights (B, N, T, S), or (B, N, T, S + M) with memory slots.
        """
        if attention_mask is not None and len(attention_mask.shape) == 3:
            attention_mask = ops.expand_dims(attention_mask, axis=1)
        normalizer, position = self.normalizer, self.position
        if self._structures:
            normalizer, value = self._structures.around(
                normalizer, self.score, query, value, cached
            )
            position = self._structures.beside_slots(position)
        dropout = self._dropout_layer if training else None
        wanted = return_attention_scores or recording.wanted(self)
        found = attend(
            query,
            key,
            value,
            score=self.score if score is None else score,
            normalizer=normalizer,
            mask=masking.structure(self, use_causal_mask),
            position=position,
            attention_mask=attention_mask,
            dropout=dropout and (lambda weights: dropout(weights, training=True)),
            return_weights=wanted,
            kernel=None if wanted else self.kernel,  # only one kernel holds the weights
            cached=cached,
            **where,
        )
        return found if wanted else (found, None)

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        arguments.check_same_keys(tuple(value_shape), tuple(key_shape or value_shape))
        query_shape = tuple(query_shape)
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    def compute_output_spec(
        self, query, value, key=None, *args, return_attention_scores=False, **kwargs
    ):
        key_shape = None if key is None else key.shape
        output = keras.KerasTensor(
            self.compute_output_shape(query.shape, value.shape, key_shape), self.compute_dtype
        )
        if not return_attention_scores:
            return output
        attended = axes.resolve(self.attention_axes, len(query.shape))
        shape = axes.weights_shape(
            self.num_heads, query.shape, value.shape, attended, self.num_memory_slots
        )
        return output, keras.KerasTensor(shape, self.compute_dtype)

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
        plain = (
            "num_heads key_dim value_dim dropout use_bias attention_axes use_gate seed "
            "num_key_value_heads qk_norm sink num_memory_slots talking_heads kernel"
        )
        objects = (
            "kernel_initializer bias_initializer kernel_regularizer bias_regularizer "
            "kernel_constraint bias_constraint score normalizer mask"
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain.split()},
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "output_shape": self._output_shape,
            "sliding_window": self._sliding_window,
            **{
                name: keras.saving.serialize_keras_object(getattr(self, name))
                for name in objects.split()
            },
            "position": config_of_shared(self.position),
        }
