"""Additive scores: Bahdanau's, Luong's concat, and the sum over units that they share."""

import keras
from keras import ops

from keras_attention.core import checks, scope, shapes
from keras_attention.core.recompute import recompute
from keras_attention.core.shapes import merges_tokens
from keras_attention.core.token_layout import pin_tokens
from keras_attention.scores.base import (
    KernelScore,
    as_floats,
    check_head_shapes,
    check_one_key_head_each,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class Additive(KernelScore):
    """`score = vᵀ tanh(W q + U k)` (Bahdanau et al., 2015, appendix A.1.2).

    The paper's W_a is `query_kernel` (N, H, units), its U_a `key_kernel` (N, H of the key, units)
    and its v_a `vector` (N, units). Memory does not grow with the units: see `sum_over_units`.
    Computed in float32 after the products with the kernels.

    Args:
        units: int; None takes the query's H.
        kernel_initializer: for all weights. None is a normal distribution that gives scores of
            variance about 1 to queries and keys of variance 1.

    Call arguments:
        query: (B, T, N, H). key: (B, S, N, any width). Returns (B, N, T, S) in the compute dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 6)
    score = ka.scores.Additive(units=8)
    assert score(query, key).shape == (2, 3, 5, 7)
    assert score.query_kernel.shape == (3, 4, 8) and score.key_kernel.shape == (3, 6, 8)
    ```
    """

    weight_axes = {
        "query_kernel": ("heads", "head_dim", "units"),
        "key_kernel": ("heads", "head_dim", "units"),
        "vector": ("heads", "units"),
    }

    def __init__(self, units=None, kernel_initializer=None, **kwargs):
        super().__init__(kernel_initializer=kernel_initializer, **kwargs)
        self.units = units
        if units is not None:
            checks.check_whole_numbers(self, "units")

    def build(self, query_shape, key_shape):
        heads, width, key_width = check_head_shapes(self, query_shape, key_shape)
        units = self.units or width
        self.query_kernel = self.add_per_head(
            "query_kernel", (heads, width, units), variance=0.5 / width
        )
        self.key_kernel = self.add_per_head(
            "key_kernel", (heads, key_width, units), variance=0.5 / key_width
        )
        self.vector = self.add_per_head("vector", (heads, units), variance=1 / units)

    def call(self, query, key):
        check_one_key_head_each(self, query, key)
        query = ops.einsum("btnh,nhu->bnut", query, self.query_kernel)
        key = ops.einsum("bsnh,nhu->bnus", key, self.key_kernel)
        scores = sum_over_units(query, key, self.vector, ops.tanh)
        return ops.cast(scores, self.compute_dtype)

    def prepare(self, key):
        return ops.einsum("bsnh,nhu->bsnu", key, ops.cast(self.key_kernel, key.dtype))

    def match(self, query, prepared):
        query = ops.einsum("btnh,nhu->btnu", query, ops.cast(self.query_kernel, query.dtype))
        query = pin_tokens(query, "heads", "units")
        return match_units(query, prepared, self.vector, ops.tanh)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="keras_attention")
class Concat(KernelScore):
    """`score = vᵀ activation(W [q; k])` (Luong et al., 2015, section 3.1, *concat*).

    W (N, H + H of the key, U) is the paper's matrix. W [q; k] is the sum of its upper half times q
    and its lower half times k, so each is multiplied once, not once for each pair. Memory does not
    grow with U: see `sum_over_units`. Computed in float32 after the products with W.

    Args:
        units: int, U; None takes the query's H.
        activation: name of a Keras activation or a serializable function of one tensor.
        kernel_initializer: for W and v. None is a normal distribution that gives scores of variance
            about 1 to queries and keys of variance 1.

    Call arguments:
        query: (B, T, N, H). key: (B, S, N, any width). Returns (B, N, T, S) in the compute dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 6)
    score = ka.scores.Concat(units=8, activation="relu")
    assert score(query, key).shape == (2, 3, 5, 7)
    assert score.kernel.shape == (3, 4 + 6, 8) and score.vector.shape == (3, 8)
    ```
    """

    weight_axes = {"kernel": ("heads", "head_dim", "units"), "vector": ("heads", "units")}

    def __init__(self, units=None, activation="tanh", kernel_initializer=None, **kwargs):
        super().__init__(kernel_initializer=kernel_initializer, **kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        if units is not None:
            checks.check_whole_numbers(self, "units")

    def build(self, query_shape, key_shape):
        heads, width, key_width = check_head_shapes(self, query_shape, key_shape)
        units, both = self.units or width, width + key_width
        self.kernel = self.add_per_head("kernel", (heads, both, units), variance=1 / both)
        self.vector = self.add_per_head("vector", (heads, units), variance=1 / units)

    def call(self, query, key):
        check_one_key_head_each(self, query, key)
        query, key = as_floats(query, key)
        width = query.shape[-1]
        kernel = ops.cast(self.kernel, query.dtype)
        query = ops.einsum("btnh,nhu->bnut", query, kernel[:, :width])
        key = ops.einsum("bsnh,nhu->bnus", key, kernel[:, width:])
        scores = sum_over_units(query, key, self.vector, self.activation)
        return ops.cast(scores, self.compute_dtype)

    def prepare(self, key):
        kernel = ops.cast(self.kernel, key.dtype)
        return ops.einsum("bsnh,nhu->bsnu", key, kernel[:, -key.shape[-1] :])

    def match(self, query, prepared):
        kernel = ops.cast(self.kernel, query.dtype)
        query = ops.einsum("btnh,nhu->btnu", query, kernel[:, : query.shape[-1]])
        query = pin_tokens(query, "heads", "units")
        return match_units(query, prepared, self.vector, self.activation)

    def get_config(self):
        activation = keras.activations.serialize(self.activation)
        return {**super().get_config(), "units": self.units, "activation": activation}


UNITS_AT_ONCE = 8


def sum_over_units(query, key, vector, activation):
    """`sum over u of vector[n, u] · activation(query[b, n, u, t] + key[b, n, u, s])`, in float32.

    The tensor of all pairs and units (B, N, T, S, U) never exists, forward or backward:
    `UNITS_AT_ONCE` units are added up at a time, and the gradient computes each slice again.

    Args:
        query: (B, N, U, T). key: (B, N, U, S). vector: (N, U), U known.

    Returns:
        (B, N, T, S), float32.
    """
    query, key, vector = (ops.cast(x, "float32") for x in (query, key, vector))
    if not merges_tokens():
        return _sum_per_head(query, key, vector, activation)
    batch, heads, units, queries = ops.shape(query)
    keys = ops.shape(key)[3]
    query = ops.reshape(query, (batch * heads, units, queries))
    key = ops.reshape(key, (batch * heads, units, keys))
    vector = shapes.tile(ops.reshape(vector, (heads, 1, units)), (batch, 1, 1))

    def compute(query, key, vector):
        return _sum_per_row(query, key, vector, activation)

    if _should_compile(activation, query, key):
        from keras_attention.scores.additive_tensorflow import tanh_sum

        scores = tanh_sum(query, key, vector, compute)
    else:
        scores = compute(query, key, vector)
    return ops.reshape(scores, (batch, heads, queries, keys))


def _sum_per_row(query, key, vector, activation):
    """Compute `sum_over_units` of (B N, U, T), (B N, U, S) and (B N, 1, U): (B N, 1, T S)."""
    rows, units, queries = ops.shape(query)
    keys = ops.shape(key)[2]
    of_slice = _make_slice_sum(activation, queries, keys)

    def units_from(start, size):
        return of_slice(
            ops.slice(query, (0, start, 0), (rows, size, queries)),
            ops.slice(key, (0, start, 0), (rows, size, keys)),
            ops.slice(vector, (0, 0, start), (rows, 1, size)),
        )

    return _sum_slices(units_from, units)


def _sum_per_head(query, key, vector, activation):
    """Compute `sum_over_units` with B and N as axes of their own, which devices may share."""

    @recompute
    def of_slice(query, key, vector):
        pairs = ops.expand_dims(query, axis=4) + ops.expand_dims(key, axis=3)  # (B, N, u, T, S)
        return ops.einsum("nu,bnuts->bnts", vector, activation(pairs))

    def units_from(start, size):
        (*front, _, queries), keys = ops.shape(query), ops.shape(key)[3]
        return of_slice(
            ops.slice(query, (0, 0, start, 0), (*front, size, queries)),
            ops.slice(key, (0, 0, start, 0), (*front, size, keys)),
            ops.slice(vector, (0, start), (front[1], size)),
        )

    return _sum_slices(units_from, query.shape[2])


def match_units(query, key, vector, activation):
    """Return the same sum for one query, with one pair for each key.

    The gradient recomputes the pairs: a loop over queries would keep those of all.

    Args:
        query: (B, 1, N, U). key: (B, S, N, U). vector: (N, U). The activation is float32.

    Returns:
        (B, N, 1, S) in the dtype of the key.
    """
    batch, length, heads, units = ops.shape(key)
    vector = ops.reshape(ops.cast(vector, "float32"), (heads, units, 1))

    def of_all(query, key, vector):
        fits = activation(ops.cast(query + key, "float32"))  # (B, S, N, U)
        if heads == 1:  # a product of two matrices: a third faster on CPUs, gradient included
            return ops.matmul(ops.reshape(fits, (-1, units)), vector[0])
        return ops.matmul(ops.transpose(fits, (0, 2, 1, 3)), vector)  # (B, N, S, 1)

    trains = not (scope.current(scope.Export) or scope.current(scope.Decoding))
    scores = (recompute(of_all) if trains else of_all)(query, key, vector)
    return ops.cast(ops.reshape(scores, (batch, heads, 1, length)), key.dtype)


def _should_compile(activation, query, key):
    if keras.backend.backend() != "tensorflow" or scope.current(scope.Export):
        return False
    from keras_attention.scores import additive_tensorflow

    return activation in (
        ops.tanh,
        keras.activations.tanh,
    ) and additive_tensorflow.is_worth_compiling(query, key)


def _make_slice_sum(activation, queries, keys):
    """Sum over u units: (B N, u, T), (B N, u, S), (B N, 1, u) -> (B N, 1, T S)."""

    def of_slice(query, key, vector):
        size = vector.shape[2]
        rows = ops.shape(vector)[0]
        query = ops.reshape(query, (rows, size, queries, 1))
        key = ops.reshape(key, (rows, size, 1, keys))
        fits = activation(query + key)  # (B N, u, T, S), the largest tensor
        return ops.matmul(vector, ops.reshape(fits, (rows, size, queries * keys)))

    return of_slice if scope.current(scope.Export) else recompute(of_slice)


def _sum_slices(units_from, units):
    """Return the sum of `units_from(start, size)` over all units.

    In a loop, each pass waits for the last; a graph of independent slices may hold all of them
    before it adds two, and in TensorFlow does. LiteRT computes in order, and delegates do not
    support loops: an exported graph has no loop.
    """
    first = units % UNITS_AT_ONCE or UNITS_AT_ONCE
    passes = (units - first) // UNITS_AT_ONCE

    def add(i, total):
        return total + units_from(first + i * UNITS_AT_ONCE, UNITS_AT_ONCE)

    total = units_from(0, first)
    if passes and not scope.current(scope.Export):
        return _loop(passes, add, total)
    for i in range(passes):
        total = add(i, total)
    return total


def _loop(passes, add, total):
    """Run `ops.fori_loop(0, passes, add, total)` with the bound that XLA needs for gradients."""
    if keras.backend.backend() != "tensorflow":
        return ops.fori_loop(0, passes, add, total)  # JAX differentiates this one, not while_loop

    def step(i, total):
        return i + 1, add(i, total)

    return ops.while_loop(lambda i, _: i < passes, step, (0, total), maximum_iterations=passes)[1]
