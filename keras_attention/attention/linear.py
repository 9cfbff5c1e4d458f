"""Linear attention: products of features replace the (T, S) attention weights."""

import functools

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention import arguments, feature_maps
from keras_attention.attention.inputs import check_call, check_rank
from keras_attention.attention.projection import ProjectionOwner, project
from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import prepend_batch

SMALLEST_SUM = 1e-30


@keras.saving.register_keras_serializable(package="keras_attention")
class LinearAttention(OwnArguments, ProjectionOwner):
    """Attention with time and memory linear in the length (Katharopoulos et al., 2020).

    `output_i = φ(q_i) · Σ_j φ(k_j) v_jᵀ / (φ(q_i) · Σ_j φ(k_j))`, where φ is a feature map
    (section 3.2). Causal attention sums over keys j <= i (section 3.3). With `feature_map="favor"`
    it is an estimate of softmax attention (Choromanski et al., 2021). The sums are float32 under
    every dtype policy. Weights (B, N, T, S) are never computed, so `record_attention` cannot show
    them, and the only masks are the causal mask and padding.

    Args:
        num_heads: int, N, the number of heads.
        key_dim: int, H, the size of a query or key head.
        value_dim: int, V, the size of a value head. None means H.
        feature_map: `"elu"` (elu(x) + 1), `"relu"`, `"favor"` (FAVOR+), or a feature map of
            `keras_attention.attention.feature_maps`, such as `FavorFeatures(num_features=512)`.
        num_key_value_heads: int K, a divisor of N. Query head h uses key head h // (N / K). None
            means N.
        mask: None, `"causal"` or `"full"`, or the mask part of that name.
        chunk_size: int, the maximum number of tokens that causal attention processes at a time. It
            changes memory and speed, but not the output.
        use_bias: bool, whether the projections have a bias.
        kernel_initializer: initializer of the projections' kernels.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D).
        key: (B, S, D). Defaults to `value`.
        query_mask: bool (B, T), True = a token, False = padding. Keras fills this mask and the next
            two from the implicit masks of the tensors.
        value_mask: bool (B, S), the same for values.
        key_mask: bool (B, S), the same for keys.
        use_causal_mask: bool, whether key j is hidden from query i when j > i. Causal attention
            requires S = T.
        initial_state: float32 (B, K, F, V + 1), the state that an earlier call returned, for F
            features: the sums over earlier keys, V columns for the numerator and a last one for
            the denominator. None means zeros.
        return_state: bool, whether to also return the state after this call. By passing it to the
            next call, you can process a causal sequence in pieces.

    For a query that sees no key, or only keys with orthogonal features, the output is exactly zero
    before the output projection. The output has the query's implicit Keras mask.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.LinearAttention(num_heads=4, key_dim=6, mask="causal")
    start, state = layer(x[:, :5], x[:, :5], return_state=True)
    end = layer(x[:, 5:], x[:, 5:], initial_state=state)
    assert np.allclose(np.concatenate([start, end], axis=1), layer(x, x), atol=1e-5)
    ```
    """

    weight_axes = {"random_features": ("head_dim", "inner")}
    own_arguments = (
        *("num_heads", "key_dim", "value_dim", "num_key_value_heads", "chunk_size", "use_bias"),
        *("feature_map", "mask", "kernel_initializer"),
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        feature_map="elu",
        num_key_value_heads=None,
        mask=None,
        chunk_size=128,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        # No autocast, so that the state stays float32. The projections cast their inputs.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.num_heads, self.key_dim = num_heads, key_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        self.num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        self.chunk_size, self.use_bias = chunk_size, use_bias
        checks.check_whole_numbers(
            self, "num_heads", "key_dim", "value_dim", "num_key_value_heads", "chunk_size"
        )
        arguments.check_groups(self.num_heads, self.num_key_value_heads)
        self.feature_map = feature_maps.get(feature_map)
        self.mask = masks.get(mask)
        if not isinstance(self.mask, masks.Causal | masks.Full | None):
            raise ValueError(
                f"mask={self.mask!r}: linear attention sums over all keys or over earlier ones. "
                "Use None or 'causal', or MultiHeadAttention for other masks."
            )
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        width, heads, groups = query_shape[-1], self.num_heads, self.num_key_value_heads
        make = functools.partial(project, self, use_bias=self.use_bias)
        self._query_dense = make("query", (width,), (heads, self.key_dim))
        key_width = tuple(key_shape or value_shape)[-1:]
        self._key_dense = make("key", key_width, (groups, self.key_dim))
        self._value_dense = make("value", tuple(value_shape)[-1:], (groups, self.value_dim))
        self._output_dense = make("attention_output", (heads, self.value_dim), (width,))
        drawn = self.feature_map.draw(self.key_dim)
        self._drawn = None
        if drawn is not None:
            self._drawn = self.add_weight(
                name="random_features",
                shape=drawn.shape,
                initializer=lambda shape, dtype=None: ops.convert_to_tensor(drawn, dtype),
                trainable=False,
                autocast=False,
            )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        use_causal_mask=False,
        initial_state=None,
        return_state=False,
    ):
        padding = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask}
        check_call(self.name, query.shape, value.shape, padding)
        key = value if key is None else key
        causal = use_causal_mask or isinstance(self.mask, masks.Causal)
        if causal:
            _check_one_length(query, value)
        queries = self.feature_map.queries(_heads_first(self._query_dense(query)), self._drawn)
        slot = self._cache_slot(value, causal, initial_state)
        keys = self.feature_map.keys(_heads_first(self._key_dense(key)), self._drawn)
        queries = _without_padding(queries, query_mask)
        keys = _without_padding(keys, value_mask, None if key_mask is value_mask else key_mask)
        if slot is not None:
            initial_state = slot["state"]
            if causal:
                keys = _without_padding(keys, scope.is_token(ops.shape(query)[1]))
        values = ops.cast(_heads_first(self._value_dense(value)), "float32")
        # the sums of a column of ones are the denominators
        values = ops.pad(values, ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=1.0)
        if slot is not None and not causal:
            new_keys = ops.zeros_like(keys) if not slot.scope.encoding else keys
            sums, state = over_all(queries, new_keys, values, initial_state)
        elif causal:
            sums, state = over_earlier(queries, keys, values, initial_state, self.chunk_size)
        else:
            sums, state = over_all(queries, keys, values, initial_state)
        if slot is not None:
            slot.update(state=state)
        numerator, denominator = ops.split(sums, [self.value_dim], axis=3)
        seen = ops.cast(ops.greater(denominator, SMALLEST_SUM), "float32")
        output = ops.multiply(ops.divide(numerator, denominator + (1.0 - seen)), seen)  # 0 / 0 is 0
        output = ops.cast(output, self.compute_dtype)
        output = self._output_dense(ops.transpose(output, (0, 2, 1, 3)))
        return (output, state) if return_state else output

    def _cache_slot(self, value, causal, initial_state):
        """Return the `CacheSlot` (cache entries) for the running sums, or None without a cache."""
        decoding = scope.current(scope.Decoding)
        if decoding is None or initial_state is not None:
            return None
        slot = decoding.slot(self)
        if not decoding.tracing:
            return None if decoding.encoding and causal else slot
        if not causal and value.shape[1] == decoding.spec.length:
            scope.refuse_decoding(f"{self.name} looks ahead. Use LinearAttention(mask='causal').")
        slot.declare(state=scope.State(self._state_shape(None)[1:], "float32"))
        return None

    def get_initial_state(self, batch_size):
        """Return the state before the first key: float32 zeros (batch_size, K, F, V + 1).

        F is the number of features of the feature map, and V is `value_dim`.
        """
        return ops.zeros(self._state_shape(batch_size), "float32")

    def _state_shape(self, batch_size):
        features = self.feature_map.size(self.key_dim)
        return (batch_size, self.num_key_value_heads, features, self.value_dim + 1)

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return query_shape

    def compute_output_spec(self, query, *args, return_state=False, **kwargs):
        check_rank(self.name, "query", query.shape)
        output = keras.KerasTensor(query.shape, self.compute_dtype)
        if not return_state:
            return output
        return output, keras.KerasTensor(self._state_shape(query.shape[0]), "float32")


def _heads_first(x):
    """Transpose (B, T, N, H) to (B, N, T, H)."""
    return ops.transpose(x, (0, 2, 1, 3))


def _without_padding(features, *padding):
    """Set `features` (B, N, T, F) to zero where one of the masks `padding` (B, T) is False."""
    for mask in padding:
        if mask is not None:
            mask = ops.expand_dims(ops.expand_dims(ops.cast(mask, "float32"), axis=1), axis=3)
            features = ops.multiply(features, mask)
    return features


def _check_one_length(query, value):
    queries, keys = query.shape[1], value.shape[1]
    if None not in (queries, keys) and queries != keys:
        raise ValueError(
            f"Causal linear attention needs as many queries as keys, but there are {queries} "
            f"queries and {keys} keys. Pass the sums over earlier keys as initial_state."
        )


def over_all(query, key, value, state=None):
    """Compute `sum_j (q_i · k_j) v_j` over all keys j, including the keys summed in `state`.

    Args:
        query: (B, N, T, F), the F features of the queries.
        key: (B, K, S, F), features of keys. K divides N: query head h uses key head h // (N / K).
        value: (B, K, S, V), the values to sum, of size V.
        state: (B, K, F, V), the sum over earlier keys, or None.

    Returns:
        The sums (B, N, T, V) and the new state (B, K, F, V).
    """
    total = ops.matmul(ops.transpose(key, (0, 1, 3, 2)), value)
    total = total if state is None else ops.add(total, state)
    heads, length, groups = query.shape[1], ops.shape(query)[2], key.shape[1]
    rows = heads // groups * length
    grouped = ops.reshape(query, prepend_batch(query, groups, rows, query.shape[3]))
    sums = ops.matmul(grouped, total)
    return ops.reshape(sums, prepend_batch(query, heads, length, value.shape[3])), total


def over_earlier(query, key, value, state=None, chunk_size=128):
    """Compute causal sums `sum_j (q_i · k_j) v_j` over keys j <= i and the keys in `state`.

    The sequence is divided into chunks of at most C = `chunk_size` tokens. Each chunk computes C²
    products q_i · k_j and adds the sum over all earlier chunks. Memory is O(T (C + F V / C)).

    query (B, N, T, F) and key (B, K, T, F) are features, and value (B, K, T, V) are values of size
    V. `state` is the sum over earlier keys (B, K, F, V), or None. Return the sums (B, N, T, V) and
    the new state.
    """
    heads, groups, length = query.shape[1], key.shape[1], ops.shape(query)[2]
    features, width = query.shape[3], value.shape[3]
    count = _at_least_one((length + chunk_size - 1) // chunk_size)
    size = _at_least_one((length + count - 1) // count)
    tensors, padded = [query, key, value], count * size
    if not (isinstance(padded, int) and padded == length):  # append zeros
        margins = ((0, 0), (0, 0), (0, padded - length), (0, 0))
        tensors = [ops.pad(x, margins) for x in tensors]
    query, key, value = (  # (B, N·count, C, A)
        ops.reshape(x, (-1, x.shape[1] * count, size, x.shape[3])) for x in tensors
    )
    query = _share(query, heads, groups, count, size)  # (B, K·count, N/K·C, F)
    swapped = ops.transpose(key, (0, 1, 3, 2))
    sums = ops.reshape(ops.matmul(swapped, value), (-1, groups, count, features * width))
    if state is None:
        sums = ops.pad(sums, ((0, 0), (0, 0), (1, 0), (0, 0)))
    else:
        sums = ops.concatenate([ops.reshape(state, (-1, groups, 1, features * width)), sums], 2)
    sums = ops.cumsum(sums, axis=2)
    before = ops.reshape(sums[:, :, :-1], (-1, groups * count, features, width))
    i = ops.expand_dims(ops.arange(heads // groups * size, dtype="int32") % size, axis=1)
    j = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    earlier = ops.reshape(ops.cast(j <= i, "float32"), (1, 1, heads // groups * size, size))
    products = ops.multiply(ops.matmul(query, swapped), earlier)
    output = ops.add(ops.matmul(products, value), ops.matmul(query, before))
    output = _unshare(output, heads, groups, count, size)[:, :, :length]
    return output, ops.reshape(sums[:, :, -1:], (-1, groups, features, width))


def _share(x, heads, groups, count, size):
    """Group the chunks of all query heads that share a key head, for one product with its keys.

    The shape (B, N·count, C, A) becomes (B, K·count, N/K·C, A), for `count` chunks of C tokens.
    `heads` is N, `groups` is K, and `size` is C.
    """
    if heads == groups:
        return x
    shared, width = heads // groups, x.shape[3]
    x = ops.reshape(x, (-1, shared, count, size * width))
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, groups * count, shared * size, width))


def _unshare(x, heads, groups, count, size):
    """Undo `_share` and join the chunks: (B, K·count, N/K·C, A) to (B, N, count·C, A).

    `heads` is N, `groups` is K, and `size` is C.
    """
    shared, width = heads // groups, x.shape[3]
    if heads != groups:
        x = ops.reshape(x, (-1, count, shared, size * width))
        x = ops.transpose(x, (0, 2, 1, 3))
    return ops.reshape(x, (-1, heads, count * size, width))


def _at_least_one(number):
    return max(number, 1) if isinstance(number, int) else ops.maximum(number, 1)
