"""A score by its definition: a rule for one query, one key and one head."""

import keras
import numpy as np
from keras import ops

B, N, T, S, H = 2, 3, 5, 7, 11
DTYPES = ("float32", "float16", "bfloat16")
# The tolerance for each dtype, relative to the largest score.
RESOLUTION = {"float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}


def tensors(key_width=H, key_heads=N, dtype="float32"):
    random = np.random.default_rng(0)
    query = random.normal(size=(B, T, N, H)).astype("float32")
    key = random.normal(size=(B, S, key_heads, key_width)).astype("float32")
    return ops.cast(query, dtype), ops.cast(key, dtype)


def array(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")), "float64")


def with_weights(score, query, key):
    """Draw the weights of a score, if any."""
    if isinstance(score, keras.layers.Layer):
        score.build(tuple(query.shape), tuple(key.shape))
        random = np.random.default_rng(1)
        for weight in score.weights:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return score


def table(rule, query, key):
    """Compute `rule(q, k, n)` for all b, n, t, s."""
    query, key = array(query), array(key)
    result = np.zeros((query.shape[0], query.shape[2], query.shape[1], key.shape[1]))
    for b, n, t, s in np.ndindex(*result.shape):
        result[b, n, t, s] = rule(query[b, t, n], key[b, s, n], n)
    return result


def assert_is(make, rule_of, key_width=H):
    """Compare `make()` with `rule_of(score)(q, k, n)` for every pair, in every dtype."""
    for dtype in DTYPES:
        query, key = tensors(key_width, dtype=dtype)
        with Policy(dtype):
            score = with_weights(make(), query, key)
        scores = score(query, key)
        assert scores.shape == (B, N, T, S)
        assert keras.backend.standardize_dtype(scores.dtype) == dtype
        expected = table(rule_of(score), query, key)
        atol = max(RESOLUTION[dtype] * np.abs(expected).max(), 1e-5 * (dtype == "float32"))
        np.testing.assert_allclose(array(scores), expected, rtol=0, atol=atol, err_msg=dtype)


class Policy:
    """Sets a policy that computes in `dtype`, with weights in float32."""

    def __init__(self, dtype):
        self.name = dtype if dtype == "float32" else f"mixed_{dtype}"

    def __enter__(self):
        self.before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self.name)

    def __exit__(self, *exception):
        keras.config.set_dtype_policy(self.before)


def assert_fold_is_call(score, key_width=H):
    """Compare `scale · query' · key'` with the score, also for two query heads and one key head."""
    query, key = tensors(key_width)
    with_weights(score, query, key)
    folded_query, folded_key, scale = score.fold(query, key)
    assert isinstance(scale, float)
    product = scale * np.einsum("btnh,bsnh->bnts", array(folded_query), array(folded_key))
    np.testing.assert_allclose(product, array(score(query, key)), atol=1e-5)

    shared = key[:, :, :1]
    folded_query, folded_key, scale = score.fold(query, shared)
    assert folded_key.shape == (B, S, 1, key_width)
    product = scale * np.einsum("btnh,bsh->bnts", array(folded_query), array(folded_key)[:, :, 0])
    repeated = ops.repeat(shared, N, axis=2)
    np.testing.assert_allclose(product, array(score(query, repeated)), atol=1e-5)


def gradients(function, *inputs):
    """Return the value of `function` and its gradients for inputs or weights, in a traced graph."""
    import tensorflow as tf

    inputs = [getattr(x, "value", x) for x in inputs]

    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = function()
        return value, tape.gradient(value, inputs)

    return run()
