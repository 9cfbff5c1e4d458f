"""Multi-head attention: `keras.layers.MultiHeadAttention`, open to any part."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention import axes, incremental, masking, memory, recording
from keras_attention.attention.attend import attend
from keras_attention.attention.call_mask import call_mask
from keras_attention.attention.heads import Heads


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(Heads):
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
        seen = None
        if 1 in self._axes:
            seen = incremental.recall(
                self,
                lambda positions: self._to_keep(keys, values, positions, turned=not overridden),
                self._kept,
                query,
                values,
                mask=masking.structure(self, use_causal_mask),
                value_mask=masking.both(value_mask, key_mask),
                query_positions=query_positions,
                attention_mask=attention_mask,
                value_positions=value_positions,
                **packed,
            )
        if seen is None:
            key_heads, value_heads = self._key_value_heads(keys, values)
        else:
            key_heads, value_heads = seen.heads["key"], seen.heads["value"]
            where, value_mask, key_mask = seen.where, seen.mask, None
            if overridden:
                key_heads, value_heads = map(incremental.heads_first, (key_heads, value_heads))
            else:
                ours["cached"] = True
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

    def _to_keep(self, keys, values, positions, turned):
        """What a cache keeps of tokens: heads first, and keys `turned` by their positions.

        An overridden `_compute_attention` turns them itself.
        """
        key_heads, value_heads = self._key_value_heads(keys, values)
        position = self.position if turned else None
        return incremental.to_keep(position, key_heads, value_heads, positions)

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
