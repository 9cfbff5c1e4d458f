"""`attend`, which computes every attention of this package, alone or for a layer."""

import dataclasses

from keras import ops

from keras_attention import masks, normalizers, positions, scores
from keras_attention.attention import inputs, kernels
from keras_attention.attention.kernels import BiasAndMask, Case, choose
from keras_attention.core import scope
from keras_attention.scores.base import as_floats


def attend(
    query,
    key,
    value,
    *,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position=None,
    attention_mask=None,
    query_mask=None,
    bias=None,
    query_positions=None,
    key_positions=None,
    query_lengths=None,
    key_lengths=None,
    segments=None,
    dropout=None,
    return_weights=True,
    implementation=None,
    flash_attention=None,
    cached=False,
):
    """Averages `value` with the weights that score, normalizer, mask and position give.

    `weights = normalize(score(rotate(q, k)) + bias, mask)`, `output = weights · v`: Vaswani et al.
    (2017), equation 1, with each of its steps a part.

    Args:
        query: (B, T, N, H). key: (B, S, K, H). value: (B, S, K, Hv), where K divides N (grouped
            queries, Ainslie et al., 2023): query head h uses key head h // (N / K).
        score, normalizer: a part, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None.
        position: a part of `keras_attention.positions` that rotates or biases, or None.
        attention_mask: bool, True = may attend, broadcastable to (B, N, T, S).
        query_mask: bool (B, T), False = padding: those queries get zero weights and output. Given
            here, and not in `attention_mask`, it costs no (T, S) tensor.
        bias: float, added to the scores, broadcastable to (B, N, T, S).
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S): where the tokens
            are, for `mask` and `position`. Default: 0, 1, 2, ...
        query_lengths, key_lengths: int (B,), tokens from there on are padding, as if `query_mask`
            and `attention_mask` said so: flash attention then needs no mask tensor. Beside such a
            mask they are a promise that it says the same and nothing else. One tensor for both,
            where queries and keys are the same tokens, lets a causal mask hide what they do.
        segments: a pair int (B, T), (B, S), the documents of queries and of keys, as
            `masks.same_segment` takes them; or None. The ring makes no (T, S) tensor of them.
        dropout: callable applied to the weights before they meet the values.
        return_weights: bool. Only the dense kernel holds the weights; without them,
            others need less time and memory.
        implementation: name of a kernel, or None for the rule of `choose`.
        flash_attention: True for the backend's flash attention, by the fused kernel, or an error;
            False for none; None where it is possible. Other kernels ignore it.
        cached: bool, whether keys and values come as a cache keeps them: heads first, (B, K, S, H)
            and (B, K, S, Hv), and the keys rotated. Nothing is transposed.

    Returns:
        The output (B, T, N, Hv), and with `return_weights` the weights (B, N, T, S), both in the
        value's dtype; whole numbers are computed with as floats. A query that may attend to
        nothing has weights and output of exactly zero.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    q, k, v = (np.random.rand(2, 5, 3, 8).astype("float32") for _ in range(3))
    output, weights = ka.attention.attend(q, k, v, mask="causal")
    assert output.shape == (2, 5, 3, 8) and weights.shape == (2, 3, 5, 5)
    assert np.all(np.asarray(weights)[:, :, 0, 1:] == 0)  # the first query sees the first key
    causal = {"mask": "causal", "return_weights": False}
    chunked = ka.attention.attend(q, k, v, **causal, implementation="chunked")
    assert np.allclose(chunked, output, atol=1e-6)
    ```
    """
    if cached and implementation not in (None, "dense"):
        raise ValueError(
            f"implementation={implementation!r} with cached=True: only dense attends to a cache. "
            "Leave out one of the two."
        )
    query, key, value = as_floats(*(ops.convert_to_tensor(x) for x in (query, key, value)))
    _check_arguments(
        query, key, cached, attention_mask, query_mask, bias, query_positions, key_positions
    )
    score, normalizer = scores.get(score), normalizers.get(normalizer)
    mask, position = masks.get(mask), positions.get(position)
    if key_lengths is not None and attention_mask is None:
        attention_mask = masks.padding(_length_mask(key_lengths, key, 2 if cached else 1))
    if query_lengths is not None and query_mask is None:
        query_mask = _length_mask(query_lengths, query)
    lengths = query.shape[1], key.shape[2 if cached else 1]
    inputs.check_lengths(mask, position, *lengths, query_positions, key_positions)
    if position is not None:
        query = position.rotate(query, query_positions)
        key = key if cached else position.rotate_key(key, key_positions)
        position = position if "bias" in position.roles else None
    attention_mask = _of_rank_four(attention_mask, "bool")
    if query_mask is not None:
        rows = ops.cast(ops.expand_dims(ops.expand_dims(query_mask, axis=2), axis=3), "bool")
        if return_weights:
            attention_mask = masks.all_of(attention_mask, ops.transpose(rows, (0, 2, 1, 3)))
    bias_and_mask = BiasAndMask(
        mask,
        position,
        attention_mask,
        _of_rank_four(bias),
        query_positions,
        key_positions,
        query_lengths,
        key_lengths,
        segments,
    )
    known = _known(query.shape[1]), _known(key.shape[1])
    case = (
        None
        if cached
        else Case(
            *known,
            score,
            normalizer,
            mask,
            positions=query_positions is not None or key_positions is not None,
            biased=bias is not None or position is not None,
            weights=return_weights,
            dropout=dropout is not None,
            flash_window=kernels.fused.takes_window(
                bias_and_mask, known, query.dtype, query.shape[3], flash_attention
            ),
        )
    )
    chosen = (
        "dense_cached" if cached else choose(case, implementation, flash_attention).implementation
    )
    if 0 in lengths and not cached:
        chosen = "dense"  # no queries or no keys to slice
    if segments is not None and chosen != "ring":
        bias_and_mask = dataclasses.replace(
            bias_and_mask,
            attention_mask=masks.all_of(attention_mask, masks.same_segment(*segments)),
            segments=None,
            query_lengths=None,
            key_lengths=None,
        )
    output, weights = kernels.run_kernel(
        chosen,
        query,
        key,
        value,
        score=score,
        normalizer=normalizer,
        bias_and_mask=bias_and_mask,
        dropout=dropout,
        **({"flash_attention": flash_attention} if chosen == "fused" else {}),
    )
    if return_weights:
        return output, weights
    return output if query_mask is None else output * ops.cast(rows, output.dtype)


@dataclasses.dataclass(frozen=True)
class AttendArguments:
    """The arguments of `attend` that a call of a layer makes, whatever its equation.

    Attributes:
        mask: the mask part of the layer and of the call, or None.
        attention_mask: bool, broadcastable to (B, N, T, S), all masks given as tensors but
            `query_mask`; or None.
        query_mask: bool (B, T), False = padding, or None.
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S), or None.
        lengths: `PaddingLengths`, what these masks say in numbers, or None.
        segments: a pair int (B, T), (B, S), where documents are not in `attention_mask`; or None.
        cached: bool, whether heads come from a cache: (B, K, S, H), and keys rotated.
        training: bool, whether dropout is active.
        return_weights: bool, whether the caller wants the weights.
        implementation: name of a kernel, or None for the rule.
        score: a part in place of the layer's, or None.
        inputs: `AttentionInputs`, as the caller gave them.
    """

    mask: object = None
    attention_mask: object = None
    query_mask: object = None
    query_positions: object = None
    key_positions: object = None
    lengths: object = None
    segments: tuple | None = None
    cached: bool = False
    training: bool = False
    return_weights: bool = False
    implementation: str | None = None
    score: object = None
    inputs: object = None

    def length_arguments(self):
        """`query_lengths` and `key_lengths` of `attend`, if the masks are still those they are of.

        A layer that changes a mask of the call thereby gives up the numbers.
        """
        lengths = self.lengths
        if lengths is None or lengths.attention_mask is not self.attention_mask:
            return {}
        found = {"key_lengths": lengths.keys}
        if lengths.query_mask is self.query_mask:
            found["query_lengths"] = lengths.queries
        return found

    def with_query_mask_inside(self):
        """The same, with documents and the padding of queries in `attention_mask`."""
        if self.query_mask is None and self.segments is None:
            return self
        documents = None if self.segments is None else masks.same_segment(*self.segments)
        mask = masks.all_of(self.attention_mask, inputs.padding_mask(self.query_mask), documents)
        return dataclasses.replace(self, attention_mask=mask, query_mask=None, segments=None)


def attend_in_layer(layer, query, key, value, call, **parts):
    """`AttentionLayer.attend`: the output, and the weights if anybody wants them, else None.

    Args:
        layer: an `AttentionLayer`, whose parts, dropout and kernel compute.
        query, key, value: heads, as `attend` takes them.
        call: `AttendArguments`.
        parts: score, normalizer or position in place of the layer's; `bias`, which is added to the
            scores and broadcasts to (B, N, T, S).
    """
    flash_attention = layer._flash_attention
    if flash_attention and call.return_weights:
        raise ValueError(
            "Returning attention scores is not supported when flash attention is enabled. "
            "Please disable flash attention to access attention scores."
        )
    dropout = layer._dropout_layer if call.training else None
    terms = {
        "score": layer.score if call.score is None else call.score,
        "normalizer": layer.normalizer,
        "position": layer.position,
        **parts,
        "mask": call.mask,
        "attention_mask": call.attention_mask,
        "query_mask": call.query_mask,
        "query_positions": call.query_positions,
        "key_positions": call.key_positions,
        **call.length_arguments(),
        "segments": call.segments,
        "dropout": dropout and (lambda weights: dropout(weights, training=True)),
        "cached": call.cached,
    }
    how = {"implementation": call.implementation, "flash_attention": flash_attention}
    if not (call.return_weights or scope.wants_weights(layer)):
        return attend(query, key, value, **terms, **how, return_weights=False), None
    output, weights = attend(query, key, value, **terms)
    if call.implementation not in (None, "dense") or flash_attention:
        output = attend(query, key, value, **terms, **how, return_weights=False)
    return output, weights


def _check_arguments(
    query, key, cached, attention_mask, query_mask, bias, query_positions, key_positions
):
    """Refuses what does not fit queries and keys, where sizes are known."""
    if len(query.shape) != 4 or len(key.shape) != 4:
        raise ValueError(
            "attend takes queries and keys of shape (batch, length, heads, size); received query "
            f"{tuple(query.shape)} and key {tuple(key.shape)}. Split the heads first: reshape to "
            "(batch, length, heads, size)."
        )
    batch, queries, heads, _ = query.shape
    keys = key.shape[2 if cached else 1]
    inputs.check_broadcastable(
        "attend", "attention_mask", attention_mask, (batch, heads, queries, keys)
    )
    inputs.check_broadcastable("attend", "bias", bias, (batch, heads, queries, keys))
    inputs.check_positions("attend", "query_positions", query_positions, queries, batch)
    inputs.check_positions("attend", "key_positions", key_positions, keys, batch)
    inputs.check_rows("attend", "query_mask", query_mask, "query", (batch, queries, heads))


def _length_mask(lengths, x, axis=1):
    """Which of the tokens along an axis of `x` come before `lengths` (B,): bool (B, T)."""
    index = ops.expand_dims(ops.arange(ops.shape(x)[axis], dtype="int32"), axis=0)
    return index < ops.expand_dims(ops.cast(lengths, "int32"), axis=1)


def _known(size):
    """`size`, or None for the symbol by which JAX stands for an unknown size."""
    return size if isinstance(size, int) else None


def _of_rank_four(x, dtype=None):
    """`x`, which broadcasts to (B, N, T, S), with all four axes."""
    if x is None:
        return None
    x = ops.convert_to_tensor(x)
    x = x if dtype is None else ops.cast(x, dtype)
    while len(x.shape) < 4:
        x = ops.expand_dims(x, axis=0)
    return x
