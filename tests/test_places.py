"""Writing at places that are known when it runs."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention import places, scope

X = np.arange(2 * 3 * 7 * 5, dtype="float32").reshape(2, 3, 7, 5) % 101


@pytest.mark.parametrize("axis, index", [(0, 1), (1, 0), (2, 4), (3, 3)])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
def test_it_writes_there_and_leaves_the_rest(axis, index, traced, dtype):
    shape = list(X.shape)
    shape[axis] = shape[axis] - index if axis != 2 else 2
    new = -1.0 - np.ones(shape, "float32")
    where = [slice(None)] * 4
    where[axis] = slice(index, index + shape[axis])
    expected = X.astype(dtype)
    expected[tuple(where)] = new.astype(dtype)
    x = ops.cast(X, dtype)
    index = ops.convert_to_tensor(index, "int32") if traced else index
    written = places.write(x, axis, index, ops.convert_to_tensor(new))
    assert keras.backend.standardize_dtype(written.dtype) == dtype
    assert np.array_equal(ops.convert_to_numpy(written), expected)
    assert np.array_equal(ops.convert_to_numpy(x), X.astype(dtype))  # and what was there, there


def test_loops_write_into_what_they_carry():
    def body(i, x):
        return i + 1, places.write(x, 1, i, ops.ones((2, 1)) * ops.cast(i, "float32"))

    _, x = ops.while_loop(lambda i, x: i < 5, body, (0, ops.zeros((2, 7))))
    assert np.array_equal(ops.convert_to_numpy(x), [[0, 1, 2, 3, 4, 0, 0]] * 2)


@pytest.mark.tensorflow
def test_gradients_pass_through_both():
    import tensorflow as tf

    x, new = tf.Variable(X), tf.Variable(np.ones((2, 3, 2, 5), "float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(places.write(x, 2, tf.constant(3), new) * X)
    of_x, of_new = tape.gradient(loss, [x, new])
    assert np.array_equal(of_new, X[:, :, 3:5])
    assert np.all(of_x[:, :, 3:5] == 0) and np.array_equal(of_x[:, :, 5:], X[:, :, 5:])


@pytest.mark.tensorflow
def test_xla_compiles_it():
    import tensorflow as tf

    run = tf.function(lambda x, i, new: places.write(x, 2, i, new), jit_compile=True)
    new = np.full((2, 3, 1, 5), -1, "float32")
    expected = X.copy()
    expected[:, :, 4:5] = -1
    assert np.array_equal(run(X, tf.constant(4), new), expected)


@pytest.mark.tensorflow
def test_only_files_of_litert_hold_what_copies_everything():
    """XLA's update copies its input, and its program is compiled for each shape."""
    import tensorflow as tf

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(11, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    model = keras.Model(tokens, x)
    cache = ka.generation.initial_cache(model, 1, 6)

    def step(index):
        with ka.generation.decoding_scope(cache, index):
            return model(tf.ones((1, 2), "int32"))

    def ops_of(exporting):
        with exporting:
            traced = tf.function(step).get_concrete_function(tf.TensorSpec((), "int32"))
        return {op.type for op in traced.graph.get_operations()}

    copies, in_place = "XlaDynamicUpdateSlice", "TensorStridedSliceUpdate"
    for exporting in (scope.Scope(), scope.Export(litert=False)):
        assert in_place in ops_of(exporting) and copies not in ops_of(exporting)
    assert copies in ops_of(scope.Export()) and in_place not in ops_of(scope.Export())
