"""The mechanism, once: every attention of this package is a call of `attend`."""

from keras import ops

from keras_attention import masks, normalizers, positions, scores
from keras_attention.attention import kernels
from keras_attention.attention.choice import Case, choose
from keras_attention.attention.square import Square


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
    dropout=None,
    return_weights=True,
    kernel=None,
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
        query_mask: bool (B, T), False = padding: those queries get weights and output of zero. Said
            here, and not in `attention_mask`, it costs no (T, S) square.
        bias: float, added to the scores, broadcastable to (B, N, T, S).
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S): where the tokens
            are, for `mask` and `position`. Default: 0, 1, 2, ...
        dropout: callable applied to the weights before they meet the values.
        return_weights: bool. Only the dense kernel holds the weights; others need less time and
            memory when they are not asked for.
        kernel: name of a kernel, or None for the rule of `choice.choose`.
        cached: bool, whether keys and values come as a cache keeps them: heads first, (B, K, S, H)
            and (B, K, S, Hv), and the keys rotated. They are then attended to where they are.

    Returns:
        The output (B, T, N, Hv), and with `return_weights` the weights (B, N, T, S), both in the
        value's dtype. A query that may attend to nothing has weights and output of exactly zero.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    q, k, v = (np.random.rand(2, 5, 3, 8).astype("float32") for _ in range(3))
    output, weights = ka.attention.attend(q, k, v, mask="causal")
    assert output.shape == (2, 5, 3, 8) and weights.shape == (2, 3, 5, 5)
    assert np.all(np.asarray(weights)[:, :, 0, 1:] == 0)  # the first query sees the first key
    causal = {"mask": "causal", "return_weights": False}
    chunked = ka.attention.attend(q, k, v, **causal, kernel="chunked")
    assert np.allclose(chunked, output, atol=1e-6)
    ```
    """
    query, key, value = (ops.convert_to_tensor(x) for x in (query, key, value))
    score, normalizer = scores.get(score), normalizers.get(normalizer)
    mask, position = masks.get(mask), positions.get(position)
    if position is not None:
        query = position.rotate(query, query_positions)
        key = key if cached else position.rotate_key(key, key_positions)
        position = position if "bias" in position.roles else None
    case = (
        None
        if cached
        else Case(
            _known(query.shape[1]),
            _known(key.shape[1]),
            score,
            normalizer,
            mask,
            positions=query_positions is not None or key_positions is not None,
            biased=bias is not None or position is not None,
            weights=return_weights,
            dropout=dropout is not None,
        )
    )
    attention_mask = _of_rank_four(attention_mask, "bool")
    if query_mask is not None:
        rows = ops.cast(ops.expand_dims(ops.expand_dims(query_mask, axis=2), axis=3), "bool")
        if return_weights:
            attention_mask = masks.all_of(attention_mask, ops.transpose(rows, (0, 2, 1, 3)))
    output, weights = kernels.run(
        "stored" if cached else choose(case, kernel).kernel,
        query,
        key,
        value,
        score=score,
        normalizer=normalizer,
        square=Square(
            mask,
            position,
            attention_mask,
            _of_rank_four(bias),
            query_positions,
            key_positions,
        ),
        dropout=dropout,
    )
    if return_weights:
        return output, weights
    return output if query_mask is None else output * ops.cast(rows, output.dtype)


def _known(size):
    """`size`, or None while it is a letter: JAX has those where others have None."""
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
