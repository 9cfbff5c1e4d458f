"""Writing a slice at an index that is only known at run time."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import in_place, scope

X = np.arange(2 * 3 * 7 * 5, dtype="float32").reshape(2, 3, 7, 5) % 101


@pytest.mark.parametrize("axis, index", [(0, 1), (1, 0), (2, 4), (3, 3)])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("kind", [scope.Scope, scope.NativeGraph])
def test_write_changes_only_the_slice(axis, index, traced, dtype, kind):
    shape = list(X.shape)
    shape[axis] = shape[axis] - index if axis != 2 else 2
    new = -1.0 - np.ones(shape, "float32")
    where = [slice(None)] * 4
    where[axis] = slice(index, index + shape[axis])
    expected = X.astype(dtype)
    expected[tuple(where)] = new.astype(dtype)
    x = ops.cast(X, dtype)
    index = ops.convert_to_tensor(index, "int32") if traced else index
    with kind():
        written = in_place.write(x, axis, index, ops.convert_to_tensor(new))
    assert keras.backend.standardize_dtype(written.dtype) == dtype
    assert np.array_equal(ops.convert_to_numpy(written), expected)
    assert np.array_equal(ops.convert_to_numpy(x), X.astype(dtype))  # the rest does not change


@pytest.mark.parametrize("kind", [scope.Scope, scope.NativeGraph])
def test_loops_write_into_their_state(kind):
    def body(i, x):
        return i + 1, in_place.write(x, 1, i, ops.ones((2, 1)) * ops.cast(i, "float32"))

    with kind():
        _, x = ops.while_loop(lambda i, x: i < 5, body, (0, ops.zeros((2, 7))))
    assert np.array_equal(ops.convert_to_numpy(x), [[0, 1, 2, 3, 4, 0, 0]] * 2)


@pytest.mark.tensorflow
def test_gradients_reach_both_tensors():
    import tensorflow as tf

    x, new = tf.Variable(X), tf.Variable(np.ones((2, 3, 2, 5), "float32"))
    with scope.NativeGraph(), tf.GradientTape() as tape:
        loss = tf.reduce_sum(in_place.write(x, 2, tf.constant(3), new) * X)
    of_x, of_new = tape.gradient(loss, [x, new])
    assert np.array_equal(of_new, X[:, :, 3:5])
    assert np.all(of_x[:, :, 3:5] == 0) and np.array_equal(of_x[:, :, 5:], X[:, :, 5:])


def decoder():
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(11, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    return keras.Model(tokens, keras.layers.Dense(11)(x))


@pytest.mark.slow
@pytest.mark.tensorflow
def test_only_generate_writes_in_place():
    import tensorflow as tf

    model = decoder()
    cache = ka.generation.initial_cache(model, 1, 6)

    def ops_of(around):
        def step(index):
            with around, ka.generation.decoding_scope(cache, index):
                return model(tf.ones((1, 2), "int32"))

        traced = tf.function(step).get_concrete_function(tf.TensorSpec((), "int32"))
        return {op.type for op in traced.graph.get_operations()}

    copying, assigning = "XlaDynamicUpdateSlice", "TensorStridedSliceUpdate"
    for around in (scope.Scope(), scope.Export()):
        assert copying in ops_of(around) and assigning not in ops_of(around)
    assert assigning in ops_of(scope.NativeGraph()) and copying not in ops_of(scope.NativeGraph())
    ka.generation.generate(model, [[1, 2]], 3)
    for function in ka.generation.piecewise.get_decoder(model)._compiled.values():
        graph = function._run.get_concrete_function().graph.as_graph_def()
        used = {node.op for body in graph.library.function for node in body.node_def}
        assert assigning in used and copying not in used


@pytest.mark.slow
@pytest.mark.tensorflow
def test_user_loops_compile_with_xla():
    import tensorflow as tf

    model = decoder()
    cache = ka.generation.initial_cache(model, 1, 6)
    names = sorted(cache)

    @tf.function(jit_compile=True)
    def loop(tokens, *tensors):
        def body(i, _, *tensors):
            with ka.generation.decoding_scope(
                dict(zip(names, tensors, strict=True)), i
            ) as decoding:
                logits = model(tf.gather(tokens, [i], axis=1))
            return i + 1, logits, *[decoding.cache[name] for name in names]

        first = (0, tf.zeros((1, 1, 11)), *tensors)
        return tf.while_loop(lambda i, *_: i < 5, body, first, maximum_iterations=5)[1]

    tokens = tf.constant([[3, 1, 4, 1, 5]])
    logits = loop(tokens, *[cache[name] for name in names])
    assert np.allclose(logits[:, 0], model(tokens)[:, -1], atol=1e-5)
