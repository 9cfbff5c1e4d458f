"""Additive scores: Bahdanau's score, Luong's *concat* score, and the sum over units in both."""

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


class UnitsScore(KernelScore):
    """Base class of scores `vᵀ activation(W q + U k)`, the sum over hidden units.

    A subclass builds the weights. Its weight `vector` (N, units) is v. Its methods `_query_half`
    and `_key_half` return W and U, of the shapes (N, query's H, units) and (N, key's H, units). Its
    attribute `activation` is a function of one tensor, by default tanh.

    Args:
        units: int, the number of hidden units. None uses the query's H.
        kernel_initializer: initializer of all weights. None uses a normal distribution for which
            queries and keys of variance 1 have scores of variance about 1.
    """

    activation = staticmethod(ops.tanh)
    own_arguments = ("units",)

    def __init__(self, units=None, kernel_initializer=None, **kwargs):
        super().__init__(kernel_initializer=kernel_initializer, **kwargs)
        self.units = units
        checks.check_whole_numbers(self, "units", optional=True)

    def call(self, query, key):
        check_one_key_head_each(self, query, key)
        query, key = as_floats(query, key)
        query = ops.einsum("btnh,nhu->bnut", query, self._query_half(query))
        key = ops.einsum("bsnh,nhu->bnus", key, self._key_half(key))
        scores = sum_over_units(query, key, self.vector, self.activation)
        return ops.cast(scores, self.compute_dtype)

    def prepare(self, key):
        return ops.einsum("bsnh,nhu->bsnu", key, self._key_half(key))

    def match(self, query, prepared):
        query = ops.einsum("btnh,nhu->btnu", query, self._query_half(query))
        query = pin_tokens(query, "heads", "units")
        return match_units(query, prepared, self.vector, self.activation)


@keras.saving.register_keras_serializable(package="keras_attention")
class Additive(UnitsScore):
    """The additive score `vᵀ tanh(W q + U k)` (Bahdanau et al., 2015, appendix A.1.2).

    The paper's W_a is the weight `query_kernel` (N, query's H, units), its U_a is `key_kernel`
    (N, key's H, units), and its v_a is `vector` (N, units). Memory does not grow with `units`,
    because a few units are computed at a time. The products with the kernels are computed in the
    compute dtype, and everything after them in float32.

    Args:
        units: int, the number of hidden units. None uses the query's H.
        kernel_initializer: initializer of all weights. None uses a normal distribution for which
            queries and keys of variance 1 have scores of variance about 1.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, any width).

    Returns:
        (B, N, T, S), in the compute dtype.

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

    def _query_half(self, query):
        return ops.cast(self.query_kernel, query.dtype)

    def _key_half(self, key):
        return ops.cast(self.key_kernel, key.dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class Concat(UnitsScore):
    """The score *concat*, `vᵀ activation(W [q, k])` (Luong et al., 2015, section 3.1).

    The weight `kernel` (N, query's H + key's H, units) is the paper's W. Its first rows are
    multiplied by q and its last rows by k, once per query and once per key instead of once per
    pair. Memory does not grow with `units`, because a few units are computed at a time. The
    products with W are computed in the compute dtype, and everything after them in float32.

    Args:
        units: int, the number of hidden units. None uses the query's H.
        activation: name of a Keras activation, or a serializable function of one tensor.
        kernel_initializer: initializer of all weights. None uses a normal distribution for which
            queries and keys of variance 1 have scores of variance about 1.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, any width).

    Returns:
        (B, N, T, S), in the compute dtype.

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
        super().__init__(units, kernel_initializer, **kwargs)
        self.activation = keras.activations.get(activation)

    def build(self, query_shape, key_shape):
        heads, width, key_width = check_head_shapes(self, query_shape, key_shape)
        units, total = self.units or width, width + key_width
        self.kernel = self.add_per_head("kernel", (heads, total, units), variance=1 / total)
        self.vector = self.add_per_head("vector", (heads, units), variance=1 / units)

    def _query_half(self, query):
        return ops.cast(self.kernel, query.dtype)[:, : query.shape[-1]]

    def _key_half(self, key):
        return ops.cast(self.kernel, key.dtype)[:, -key.shape[-1] :]

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
        }


UNITS_AT_ONCE = 8


def sum_over_units(query, key, vector, activation):
    """Compute the additive scores of all pairs of a query and a key, from projected inputs.

    A score is the sum over u of `vector[n, u] · activation(query[b, n, u, t] + key[b, n, u, s])`.
    Neither the forward nor the backward pass creates a tensor (B, N, T, S, U): the sum handles
    `UNITS_AT_ONCE` units at a time, and the gradient recomputes each slice of units.

    Args:
        query: (B, N, U, T), already projected to U units.
        key: (B, N, U, S), projected to the same U units.
        vector: (N, U), the weights of the units in the sum.
        activation: function of one tensor, such as `ops.tanh`.

    Returns:
        float32 (B, N, T, S).
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
    """Compute `sum_over_units` with the axes B and N merged: (B · N, 1, T · S).

    query is (B · N, U, T), key (B · N, U, S) and vector (B · N, 1, U).
    """
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
    """Compute `sum_over_units` with separate axes B and N, which may be sharded over devices."""

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
    """Compute `sum_over_units` for one query per row: (B, N, 1, S) in the dtype of the key.

    In training, the gradient recomputes the activations. Otherwise a recurrent loop over queries
    would store them for all queries.

    Args:
        query: (B, 1, N, U), already projected to U units.
        key: (B, S, N, U), projected to the same U units.
        vector: (N, U), the weights of the units in the sum.
        activation: function of one tensor, such as `ops.tanh`.
    """
    batch, length, heads, units = ops.shape(key)
    vector = ops.reshape(ops.cast(vector, "float32"), (heads, units, 1))

    def of_all(query, key, vector):
        fits = activation(ops.cast(query + key, "float32"))  # (B, S, N, U)
        if heads == 1:  # one matrix product: a third faster on CPUs, including the gradient
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
    """Return a function that computes the sum over a slice of u units.

    `queries` and `keys` are T and S. The function maps query (B · N, u, T), key (B · N, u, S) and
    vector (B · N, 1, u) to (B · N, 1, T · S). The gradient recomputes it, unless a model is
    exported.
    """

    def of_slice(query, key, vector):
        size = vector.shape[2]
        rows = ops.shape(vector)[0]
        query = ops.reshape(query, (rows, size, queries, 1))
        key = ops.reshape(key, (rows, size, 1, keys))
        fits = activation(query + key)  # (B N, u, T, S), the largest tensor
        return ops.matmul(vector, ops.reshape(fits, (rows, size, queries * keys)))

    return of_slice if scope.current(scope.Export) else recompute(of_slice)


def _sum_slices(units_from, units):
    """Return the sum of `units_from(start, size)` over slices that cover all units.

    `units_from(start, size)` sums the units from `start` to `start + size`, of `units` in total.
    The slices are computed in a loop, because TensorFlow would otherwise compute all of them before
    it adds the first two. An exported graph is unrolled instead: LiteRT executes operations in
    order anyway, and its delegates do not support loops.
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
    """Run `ops.fori_loop(0, passes, add, total)` so that all backends can differentiate it.

    For i from 0 to `passes` - 1, it computes `total = add(i, total)`, and then returns `total`.

    On TensorFlow, XLA can differentiate only a while loop with `maximum_iterations`.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.fori_loop(0, passes, add, total)  # JAX cannot differentiate while_loop

    def step(i, total):
        return i + 1, add(i, total)

    return ops.while_loop(lambda i, _: i < passes, step, (0, total), maximum_iterations=passes)[1]
