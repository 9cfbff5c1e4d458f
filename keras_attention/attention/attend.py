"""`attend`: `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`."""

import dataclasses

from keras import ops

from keras_attention import normalizers, positions, scores
from keras_attention.attention import inputs, kernels
from keras_attention.attention.visibility import Visibility, to_rank_four
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
    bias=None,
    dropout=None,
    return_weights=True,
    implementation=None,
    flash_attention=None,
):
    """Averages `value` with the weights that score, normalizer, mask and position give.

    `weights = normalize(score(rotate(q), rotate(k)) + bias, mask)`, `output = weights · v`: Vaswani
    et al. (2017), equation 1, with each of its steps a part.

    Args:
        query: (B, T, N, H). key: (B, S, K, H). value: (B, S, K, Hv), where K divides N (grouped
            queries, Ainslie et al., 2023): query head h uses key head h // (N / K).
        score, normalizer: a part, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None. A `Visibility` adds
            masks that are tensors, positions, lengths and packed documents.
        position: a part of `keras_attention.positions` that rotates or biases, or None.
        bias: float, added to the scores, broadcastable to (B, N, T, S).
        dropout: callable applied to the weights before they meet the values.
        return_weights: bool. Only the dense kernel holds the weights. Without them others need
            less time and memory.
        implementation: name of a kernel, or None for the rule of `choose`. `"dense_cached"` takes
            keys and values as a cache keeps them, heads first, (B, K, S, H) and (B, K, S, Hv), and
            keys that are rotated: nothing is transposed.
        flash_attention: True for the backend's flash attention, by the fused kernel, or an error.
            False for none, None where it is possible. Other kernels ignore it.

    Returns:
        The output (B, T, N, Hv), and with `return_weights` the weights (B, N, T, S), both in the
        value's dtype. Whole numbers become floats. A query that may attend to nothing has weights
        and output of exactly zero.

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
    query, key, value = (ops.convert_to_tensor(x) for x in (query, key, value))
    equation = Equation(
        scores.get(score), normalizers.get(normalizer), positions.get(position), bias, dropout
    )
    visibility = mask if isinstance(mask, Visibility) else Visibility(mask)
    key_axis = 2 if implementation == kernels.CACHED else 1
    inputs.check_heads(query, key, key_axis, equation.bias, visibility)
    visibility = visibility.with_masks_of_lengths(ops.shape(query)[1], ops.shape(key)[key_axis])
    output, weights = compute_attention(
        query, key, value, equation, visibility, return_weights, implementation, flash_attention
    )
    return (output, weights) if return_weights else output


@dataclasses.dataclass(frozen=True, eq=False)
class Equation:
    """What attention computes: `normalize(score(rotate(q), rotate(k)) + bias, mask) · v`.

    `AttentionLayer.make_equation` makes it for each call. A layer that adds to its scores hands on
    `dataclasses.replace(equation, bias=...)`.

    Args:
        score, normalizer: parts. position: a part that rotates or biases, or None.
        bias: float, added to the scores, broadcastable to (B, N, T, S); or None.
        dropout: callable applied to the weights before they meet the values, or None.
    """

    score: scores.Score
    normalizer: normalizers.Normalizer
    position: positions.Position | None = None
    bias: object = None
    dropout: object = None

    def __post_init__(self):
        object.__setattr__(self, "bias", to_rank_four(self.bias))

    @property
    def position_biases(self):
        """Whether the position adds to scores or outputs."""
        return self.position is not None and "bias" in self.position.roles

    def block_bias(self, i, j, query, key, bias):
        """Return what is added to the scores of a block, (B, N, rows, columns), or None.

        Args:
            i, j: positions of the queries and keys of the block.
            query, key: those of the block, (B, rows, N, H) and (B, columns, K, H), rotated.
            bias: the cut of `self.bias` for the block.
        """
        relative = self.position.bias(i, j, query, key) if self.position_biases else None
        if bias is None or relative is None:
            return relative if bias is None else bias
        return bias + relative  # not ops.add: see tests/test_traps.py

    def block_values(self, i, j, weights):
        """Return what the position adds to the output of a block (B, rows, N, Hv), or None.

        `weights` (B, N, rows, columns) are those of the block.
        """
        return self.position.values(i, j, weights) if self.position_biases else None


def compute_attention(
    query,
    key,
    value,
    equation,
    visibility,
    return_weights=False,
    implementation=None,
    flash_attention=None,
):
    """Return the output, and with `return_weights` the weights, else None.

    As `attend`, where `equation` and `visibility` say what is computed and who sees whom.
    """
    query, key, value = as_floats(query, key, value)
    cached = implementation == kernels.CACHED
    queries, keys = query.shape[1], key.shape[2 if cached else 1]
    i, j = visibility.query_positions, visibility.key_positions
    inputs.check_lengths(visibility.mask, equation.position, queries, keys, i, j)
    if equation.position is not None:
        query = equation.position.rotate(query, i)
        key = key if cached else equation.position.rotate_key(key, j)
    if return_weights:
        visibility = visibility.hide_padded_queries()
    choice = kernels.choose(
        query, key, equation, visibility, return_weights, implementation, flash_attention
    )
    kernel = kernels.bind(choice.implementation, flash_attention)
    output, weights = kernel(query, key, value, equation, visibility)
    if visibility.query_mask is not None:
        tokens = ops.cast(visibility.query_mask, output.dtype)
        output = output * ops.expand_dims(ops.expand_dims(tokens, axis=2), axis=3)
    return output, weights if return_weights else None
