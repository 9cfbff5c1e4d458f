"""The function `attend`, and `Equation`, which holds the parts of an attention computation."""

import dataclasses

import keras
from keras import ops

from keras_attention import normalizers, positions, scores
from keras_attention.attention import inputs, kernels
from keras_attention.attention.visibility import Visibility, to_rank_four
from keras_attention.scores.base import Score, as_floats, score_pairs


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
    """Compute attention: the mean of `value`, weighted by how well each query matches each key.

    `weights = normalize(score(rotate(q), rotate(k)) + bias, mask)` and `output = weights · v`. This
    is equation 1 of Vaswani et al. (2017), with a replaceable part for each step.

    Args:
        query: (B, T, N, H), the query heads.
        key: (B, S, K, H). K must divide N. With K < N this is grouped-query attention (Ainslie et
            al., 2023): query head h uses key head h // (N / K).
        value: (B, S, K, Hv), the value heads.
        score: a score of `keras_attention.scores`, its name or its config.
        normalizer: a normalizer of `keras_attention.normalizers`, its name or its config.
        mask: a mask of `keras_attention.masks`, its name, its config, or None. Pass a `Visibility`
            instead to give mask tensors, positions, lengths or packed documents.
        position: an encoding of `keras_attention.positions` that rotates or biases, its name, its
            config, or None.
        bias: float tensor added to the scores, broadcastable to (B, N, T, S), or None.
        dropout: function applied to the weights before the product with the values, or None.
        return_weights: bool, whether to return the weights too. Only the dense kernel can return
            them. Other kernels need less time and memory.
        implementation: name of a kernel, a way to compute the same result, such as `"chunked"`.
            None applies the rule of `choose`. With `"dense_cached"`, keys and values must have the
            layout of a cache, (B, K, S, H) and (B, K, S, Hv), and the keys must be rotated already.
        flash_attention: True requires the backend's flash attention, which the fused kernel uses.
            False excludes it. None uses it if possible. Other kernels ignore this argument.

    Returns:
        The output (B, T, N, Hv), or a tuple of the output and the weights (B, N, T, S) if
        `return_weights`. Both have the value's dtype, or a float dtype if the inputs are integers.
        For a query that sees no key, weights and output are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    q, k, v = (np.random.rand(2, 5, 3, 8).astype("float32") for _ in range(3))
    output, weights = ka.attention.attend(q, k, v, mask="causal")
    assert output.shape == (2, 5, 3, 8) and weights.shape == (2, 3, 5, 5)
    assert np.all(np.asarray(weights)[:, :, 0, 1:] == 0)  # query 0 sees only key 0
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
    """The parts of the equation `normalize(score(rotate(q), rotate(k)) + bias, mask) · v`.

    `AttentionLayer.make_equation` creates one for each call. A layer that adds a bias to its scores
    uses `dataclasses.replace(equation, bias=...)`.

    Args:
        score: a score of `keras_attention.scores`.
        normalizer: a normalizer of `keras_attention.normalizers`.
        position: an encoding of `keras_attention.positions` that rotates or biases, or None.
        bias: float tensor added to the scores, broadcastable to (B, N, T, S), or None.
        dropout: function applied to the weights before the product with the values, or None.
        num_slots: int, the number of memory slots: learned keys without a position, which come
            after the keys of the tokens.
    """

    score: scores.Score
    normalizer: normalizers.Normalizer
    position: positions.Position | None = None
    bias: object = None
    dropout: object = None
    num_slots: int = 0

    def __post_init__(self):
        object.__setattr__(self, "bias", to_rank_four(self.bias))

    @property
    def position_biases(self):
        """Return whether the position encoding adds terms to scores or outputs."""
        return self.position is not None and "bias" in self.position.roles

    def block_bias(self, i, j, query, key, bias):
        """Compute the total bias of a block of scores: (B, N, rows, columns), or None.

        A block is the scores of some queries (its rows) with some keys (its columns).

        Args:
            i: int (rows,) or (B, rows), the positions of the block's queries.
            j: int (columns,) or (B, columns), the positions of the block's keys.
            query: the block's queries (B, rows, N, H), rotated.
            key: the block's keys (B, columns, K, H), rotated.
            bias: the block of `self.bias`, or None.
        """
        relative = self.position.bias(i, j, query, key) if self.position_biases else None
        if bias is None or relative is None:
            return relative if bias is None else bias
        return bias + relative  # not ops.add: see tests/test_traps.py

    def block_values(self, i, j, weights):
        """Compute the position encoding's term in the output of a block.

        Args:
            i: int (rows,) or (B, rows), the positions of the block's queries.
            j: int (columns,) or (B, columns), the positions of the block's keys.
            weights: the block's weights (B, N, rows, columns).

        Returns:
            (B, rows, N, Hv), or None.
        """
        if not self.position_biases:
            return None
        weights = weights[:, :, :, : -self.num_slots] if self.num_slots else weights
        return self.position.values(i, j, weights)


class RawScores(Score):
    """The score of a `ResidualAttention` layer: its own score plus the scores of the layer below.

    After a call, the attribute `raw` holds the sum (B, N, T, S), to pass to the layer above.

    Args:
        score: the layer's own score.
        previous: (B, N, T, S), the sum of the layer below, or None in the first layer.
    """

    def __init__(self, score, previous):
        self.score, self.previous, self.raw = score, previous, None

    def __call__(self, query, key):
        self.raw = score_pairs(self.score, query, key)
        if self.previous is not None:
            self.raw = ops.add(self.raw, ops.cast(self.previous, self.raw.dtype))
        return self.raw


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
    """Compute attention as `attend` does, from an `Equation` and a `Visibility`.

    Args:
        query, key, value: the heads (B, T, N, H), (B, S, K, H) and (B, S, K, Hv).
        equation: `Equation`, which holds the score, the normalizer and the position encoding.
        visibility: `Visibility`, which holds the masks and positions of this call.
        return_weights, implementation, flash_attention: as in `attend`.

    Returns:
        The output (B, T, N, Hv), and the weights (B, N, T, S). The weights are None without
        `return_weights`.
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
    kernel = kernels.bind(choice.implementation, return_weights, flash_attention)
    if isinstance(query, keras.KerasTensor) and not cached:
        kernel = kernels.bind("dense")  # for shapes without numbers
    output, weights = kernel(query, key, value, equation, visibility)
    if visibility.query_mask is not None:
        tokens = ops.cast(visibility.query_mask, output.dtype)
        output = output * ops.expand_dims(ops.expand_dims(tokens, axis=2), axis=3)
    return output, weights if return_weights else None
