import numpy as np
import pytest
from keras import ops

from keras_attention import positions
from keras_attention.positions.patch_grid import compute_coordinates

MAKERS = {
    "Sinusoidal2D": positions.Sinusoidal2D,
    "Learned2D": positions.Learned2D,
    "SwinBias": positions.SwinBias,
    "ContinuousBias": positions.ContinuousBias,
    "Rotary": lambda grid, prefix=0: positions.Rotary(grid=grid, prefix=prefix),
}


def test_coordinates_count_row_by_row():
    index = np.arange(2 + 3 * 5)
    rows, columns = compute_coordinates(ops.convert_to_tensor(index), (3, 5), 2)
    assert np.array_equal(rows[:2], [0, 0]) and np.array_equal(columns[:2], [0, 0])
    np.testing.assert_array_equal(rows[2:], np.repeat([0, 1, 2], 5))
    np.testing.assert_array_equal(columns[2:], np.tile([0, 1, 2, 3, 4], 3))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("grid", [3, (3,), (0, 2), (2, 3, 4), (2, 2.5), "33"])
def test_grid_is_checked(name, grid):
    with pytest.raises(ValueError, match=rf"{name}\(grid="):
        MAKERS[name](grid)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("prefix", [-1, 0.5, None])
def test_prefix_is_checked(name, prefix):
    with pytest.raises(ValueError, match=rf"{name}\(prefix={prefix!r}\)"):
        MAKERS[name]((2, 3), prefix)


def test_a_prefix_without_a_grid_is_refused():
    with pytest.raises(ValueError, match=r"Rotary\(prefix=1\): .*Give grid=\(rows, columns\) too"):
        positions.Rotary(prefix=1)


@pytest.mark.parametrize("name", ["Sinusoidal2D", "Learned2D"])
def test_a_wrong_number_of_tokens_is_an_error(name):
    position = MAKERS[name]((2, 3), 1)
    if name == "Learned2D":
        position.build((None, None, 8))
    position.embed(np.zeros((1, 7, 8), "float32"))
    with pytest.raises(
        ValueError, match=r"length 8 is longer than .*which has 1 \+ 2 · 3 positions"
    ):
        position.embed(np.zeros((1, 8, 8), "float32"))
    position.embed(np.zeros((1, 6, 8), "float32"))  # the beginning of an image
    with pytest.raises(
        ValueError, match=r"length 6 is shorter than .*which has 1 \+ 2 · 3 positions"
    ):
        position.check_length(6)
    with pytest.raises(ValueError, match=r"Positions 6 to 7 are not all in .*which has 0 to 6\."):
        position.embed(np.zeros((1, 2, 8), "float32"), [6, 7])
    with pytest.raises(ValueError, match="Positions -1 to 3 are not all in"):
        position.embed(np.zeros((1, 2, 8), "float32"), [-1, 3])


@pytest.mark.parametrize("name", ["SwinBias", "ContinuousBias"])
def test_too_many_queries_or_keys_are_an_error(name):
    position = MAKERS[name]((2, 3), 1)
    position.build((None, None, 2, 4))
    right, wrong = np.zeros((1, 7, 2, 4), "float32"), np.zeros((1, 8, 2, 4), "float32")
    position.bias(None, None, right, right)
    for query, key in ((wrong, right), (right, wrong)):
        with pytest.raises(ValueError, match=rf"length 8 is longer than {name}\(grid=\(2, 3\)"):
            position.bias(None, None, query, key)


RANDOM = np.random.default_rng(0)


def bilinear(grid, new):
    """Resize (rows, columns, D) by the definition: pixel centres, edges repeated."""
    old, result = grid.shape[:2], np.zeros((*new, grid.shape[2]))
    for y in range(new[0]):
        for x in range(new[1]):
            at_y, at_x = (y + 0.5) * old[0] / new[0] - 0.5, (x + 0.5) * old[1] / new[1] - 0.5
            for near_y in (int(np.floor(at_y)), int(np.floor(at_y)) + 1):
                for near_x in (int(np.floor(at_x)), int(np.floor(at_x)) + 1):
                    weight = (1 - abs(at_y - near_y)) * (1 - abs(at_x - near_x))
                    inside = grid[min(max(near_y, 0), old[0] - 1), min(max(near_x, 0), old[1] - 1)]
                    result[y, x] += weight * inside
    return result


@pytest.mark.parametrize("new", [(6, 6), (3, 10), (7, 4)])
def test_interpolation_equals_the_definition(new):
    table = RANDOM.normal(size=(3 * 4, 5)).astype("float32")
    result = positions.interpolate(table, (3, 4), new, method="bilinear")
    expected = bilinear(table.reshape(3, 4, 5), new).reshape(-1, 5)
    np.testing.assert_allclose(result, expected, atol=1e-5)


@pytest.mark.parametrize("method", ["bicubic", "bilinear", "nearest"])
@pytest.mark.parametrize("new", [(7, 9), (2, 2)])
def test_interpolation_keeps_a_constant_table_constant(method, new):
    table = np.tile(np.arange(5.0), (12, 1))
    result = positions.interpolate(table, (3, 4), new, method=method)
    np.testing.assert_allclose(result, np.tile(np.arange(5.0), (new[0] * new[1], 1)), atol=1e-5)


def test_interpolation_does_not_swap_rows_and_columns():
    """Use a table that differs only between rows."""
    table = np.repeat(np.arange(4.0), 4)[:, None] * np.ones((1, 3))
    result = positions.interpolate(table, (4, 4), (8, 2), method="bilinear").reshape(8, 2, 3)
    np.testing.assert_allclose(result[:, 0], result[:, 1], atol=1e-6)
    assert np.all(np.diff(result[:, 0], axis=0) >= 0) and result[7, 0, 0] > result[0, 0, 0]


@pytest.mark.parametrize("prefix", [1, 3])
def test_interpolation_does_not_resize_prefix_tokens(prefix):
    table = RANDOM.normal(size=(prefix + 16, 6)).astype("float32")
    result = positions.interpolate(table, (4, 4), (6, 5), prefix=prefix)
    assert result.shape == (prefix + 30, 6) and result.dtype == table.dtype
    np.testing.assert_array_equal(result[:prefix], table[:prefix])
    np.testing.assert_array_equal(
        result[prefix:], positions.interpolate(table[prefix:], (4, 4), (6, 5))
    )


def test_interpolation_to_the_same_grid_changes_nothing():
    table = RANDOM.normal(size=(13, 6))
    np.testing.assert_array_equal(positions.interpolate(table, (3, 4), (3, 4), prefix=1), table)


def test_interpolation_of_a_learned_table():
    position = positions.Learned(17)
    position.build((None, None, 6))
    other = position.interpolate((4, 4), (6, 6), prefix=1)
    assert other.max_length == 37 and other.built and position.max_length == 17
    expected = positions.interpolate(position.table, (4, 4), (6, 6), prefix=1)
    np.testing.assert_array_equal(other.table, expected)
    x = np.zeros((1, 37, 6), "float32")
    np.testing.assert_array_equal(other.embed(x)[0], expected)


def test_interpolation_of_a_table_for_text():
    table = np.arange(8.0)[:, None]
    result = positions.interpolate(table, (1, 8), (1, 16), method="bilinear")
    np.testing.assert_allclose(result[1:-1, 0], np.arange(0.25, 7, 0.5)[:14], atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((3, 4), (6, 6), 1), r"shape \(12, 5\) does not hold 1 vectors and then 3 · 4"),
        (((3, 4), 6), r"interpolate\(new_grid=6\)"),
        ((12, (6, 6)), r"interpolate\(grid=12\)"),
        (((3, 4), (6, 6), 0, "cubic"), r"interpolate\(method='cubic'\): method must be one of"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        positions.interpolate(np.zeros((12, 5)), *arguments)
