import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import positions

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


def built(max_length=11, width=3, **kwargs):
    position = positions.Learned(max_length, **kwargs)
    position.build((None, None, width))
    return position


def test_embeddings_equal_the_definition():
    position = built()
    (table,) = position.get_weights()
    result = position.embed(X)
    where = np.random.default_rng(1).integers(0, 11, (2, 5))
    chosen = position.embed(X, where)
    for b in range(2):
        for p in range(5):
            for c in range(3):
                assert float(result[b, p, c]) == pytest.approx(X[b, p, c] + table[p, c])
                assert float(chosen[b, p, c]) == pytest.approx(X[b, p, c] + table[where[b, p], c])


def test_new_tables_are_small_and_random():
    (table,) = built(max_length=500, width=64).get_weights()
    assert table.std() == pytest.approx(0.02, rel=0.05) and abs(table.mean()) < 1e-3
    assert not np.array_equal(table, built(max_length=500, width=64).get_weights()[0])


def test_weights_stay_float32_under_a_mixed_policy():
    position = built(dtype="mixed_bfloat16")
    assert position.table.dtype == "float32"
    x = ops.cast(X, "bfloat16")
    for result in (position.embed(x), position(x)):
        assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"
        with keras.src.backend.AutocastScope("bfloat16"):
            exact = ops.cast(ops.cast(x, "float32") + position.table.value[:5], "bfloat16")
        np.testing.assert_array_equal(ops.cast(result, "float32"), ops.cast(exact, "float32"))


@pytest.mark.parametrize("call", [lambda p, x: p.embed(x), lambda p, x: p(x)])
def test_a_static_length_past_the_table_is_an_error(call):
    position = built(max_length=4)
    with pytest.raises(ValueError, match=r"length 5 is longer than Learned\(max_length=4\)"):
        call(position, X)
    with pytest.raises(ValueError, match=r"length 5 .*max_length=4"):
        keras.Model(inputs := keras.Input((5, 3)), positions.Learned(4)(inputs))


@pytest.mark.parametrize(
    "where",
    [
        [0, 1, 2, 3, 11],
        [-1, 0, 1, 2, 3],
        np.full((2, 5), 11),
        ops.convert_to_tensor([9, 10, 11, 0, 1]),
    ],
)
def test_positions_past_the_table_are_an_error(where):
    first, last = np.min(np.asarray(where)), np.max(np.asarray(where))
    with pytest.raises(
        ValueError, match=rf"{first} to {last} are not all in Learned\(max_length=11\)"
    ):
        built().embed(X, where)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a TensorFlow graph")
def test_the_runtime_checks_an_unknown_length():
    import tensorflow as tf

    position = built(max_length=4)
    run = tf.function(position.embed, input_signature=[tf.TensorSpec((None, None, 3))])
    np.testing.assert_array_equal(run(X[:, :4]), position.embed(X[:, :4]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(X)


def test_extend_keeps_the_old_rows():
    position = built(initializer="ones")
    longer = position.extend(17)
    assert longer.max_length == 17 and longer is not position and position.max_length == 11
    (old,), (new,) = position.get_weights(), longer.get_weights()
    assert new.shape == (17, 3)
    np.testing.assert_array_equal(new[:11], old)
    np.testing.assert_array_equal(new[11:], np.ones((6, 3)))
    np.testing.assert_array_equal(longer.embed(X), position.embed(X))
    (zeros,) = position.extend(17, initializer="zeros").get_weights()
    np.testing.assert_array_equal(zeros, np.concatenate([old, np.zeros((6, 3))]))


def test_extend_before_building():
    longer = positions.Learned(11, name="where").extend(17)
    assert not longer.built and longer.max_length == 17 and longer.name == "where"


@pytest.mark.parametrize("length", [10, 0, 12.5])
def test_extend_does_not_shorten(length):
    with pytest.raises(ValueError, match=rf"new_length={length}\).* at least 11"):
        built().extend(length)


def test_extend_a_loaded_model(tmp_path):
    def model(position):
        tokens = keras.Input((None, 3))
        return keras.Model(tokens, position(tokens))

    short = model(positions.Learned(5, name="where"))
    short.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(X), short(X))
    long = model(positions.Learned(7, name="where"))
    long.get_layer("where").set_weights(loaded.get_layer("where").extend(7).get_weights())
    np.testing.assert_array_equal(long(X), short(X))
    assert long(np.zeros((1, 7, 3))).shape == (1, 7, 3)


def test_an_unbuilt_position_is_an_error():
    with pytest.raises(ValueError, match=r"Learned has no weights yet: .*build\(\)"):
        positions.Learned(11).embed(X)


@pytest.mark.parametrize("shape", [(None, None, 2, 3), (None, None, None), (None, 3)])
def test_a_wrong_shape_is_refused(shape):
    with pytest.raises(
        ValueError, match=r"Learned adds to tokens of shape \(batch, length, width\)"
    ):
        positions.Learned(11).build(shape)


@pytest.mark.parametrize("length", [0, 2.5, None])
def test_max_length_is_checked(length):
    with pytest.raises(ValueError, match=rf"Learned\(max_length={length}\)"):
        positions.Learned(length)


GRID, D = (3, 5), 4
RANDOM = np.random.default_rng(0)


def built_2d(grid=GRID, prefix=0, width=D, **kwargs):
    position = positions.Learned2D(grid, prefix, **kwargs)
    position.build((None, None, width))
    return position


@pytest.mark.parametrize("prefix", [0, 2])
def test_2d_embeddings_equal_the_definition(prefix):
    position = built_2d(prefix=prefix)
    columns, rows, *front = position.get_weights()
    assert columns.shape == (5, 2) and rows.shape == (3, 2) and len(front) == bool(prefix)
    x = RANDOM.normal(size=(2, prefix + 15, D)).astype("float32")
    result = position.embed(x)
    for t in range(prefix + 15):
        row, column = divmod(t - prefix, 5)
        in_grid = np.concatenate([columns[column], rows[row]])
        expected = x[:, t] + (front[0][t] if t < prefix else in_grid)
        np.testing.assert_allclose(result[:, t], expected, atol=1e-6)


@pytest.mark.parametrize("prefix", [0, 1])
def test_explicit_positions(prefix):
    position = built_2d(prefix=prefix)
    x = RANDOM.normal(size=(2, 15, D)).astype("float32")
    whole = np.asarray(position.embed(x))
    rows = np.array([[3, 0, 14], [1, 2, 9]])
    picked = np.take_along_axis(x, rows[:, :, None], axis=1)
    expected = np.take_along_axis(whole, rows[:, :, None], axis=1)
    np.testing.assert_allclose(position.embed(picked, rows), expected, atol=1e-6)
    np.testing.assert_allclose(position(picked, rows), expected, atol=1e-6)


def test_new_2d_tables_differ():
    columns, rows = built_2d(grid=(4, 4)).get_weights()
    assert not np.array_equal(columns, rows)


def test_interpolate():
    position = built_2d(prefix=1)
    other = position.interpolate((6, 5), method="bilinear")
    assert other.grid == (6, 5) and position.grid == (3, 5)
    columns, rows, front = position.get_weights()
    new_columns, new_rows, new_front = other.get_weights()
    np.testing.assert_array_equal(new_columns, columns)
    np.testing.assert_array_equal(new_front, front)
    np.testing.assert_allclose(
        new_rows, positions.interpolate(rows, (1, 3), (1, 6), method="bilinear")
    )
    assert not positions.Learned2D(GRID).interpolate((2, 2)).built


def test_interpolated_weights_fit_a_new_model():
    def model(grid):
        x = keras.Input((grid[0] * grid[1], D))
        return keras.Model(x, positions.Learned2D(grid, name="where")(x))

    small, large = model((2, 2)), model((4, 6))
    learned = small.get_layer("where").interpolate((4, 6))
    large.get_layer("where").set_weights(learned.get_weights())
    x = RANDOM.normal(size=(1, 24, D)).astype("float32")
    np.testing.assert_array_equal(large(x), learned(x))


def test_2d_weights_stay_float32_under_a_mixed_policy():
    position = built_2d(dtype="mixed_bfloat16")
    assert {w.dtype for w in position.weights} == {"float32"}
    result = position(ops.zeros((1, 15, D), "bfloat16"))
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"


@pytest.mark.parametrize("shape", [(None, None, 5), (None, None, None), (None, 4)])
def test_2d_refuses_a_wrong_shape(shape):
    with pytest.raises(ValueError, match="Learned2D adds to tokens of shape .*even width"):
        positions.Learned2D(GRID).build(shape)


def test_an_unbuilt_2d_position_is_an_error():
    with pytest.raises(ValueError, match="Learned2D has no weights yet"):
        positions.Learned2D(GRID).embed(np.zeros((1, 15, 4)))
