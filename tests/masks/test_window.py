import itertools

import numpy as np
import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_key_is_visible_when_it_is_nearer_than_size(size):
    assert_is(masks.Window(size), lambda i, j: abs(i - j) < size)


def test_a_causal_window_shows_size_keys():
    shown = masks.materialize(masks.Causal() & masks.Window(3), range(11), range(11))
    np.testing.assert_array_equal(np.sum(shown[0, 0], axis=-1), [1, 2] + 9 * [3])


@pytest.mark.parametrize("size", [0, -1, 2.5, "3", None, True])
def test_size_is_checked(size):
    with pytest.raises(ValueError, match=rf"Window\(size={size!r}\): size must .* at least 1"):
        masks.Window(size)


def test_a_numpy_size_becomes_an_int():
    assert type(masks.Window(np.int64(3)).size) is int


@pytest.mark.parametrize("size, dilation", [(1, 3), (2, 2), (3, 2), (2, 5), (4, 1)])
def test_keys_are_dilation_apart(size, dilation):
    assert_is(
        masks.Dilated(size, dilation),
        lambda i, j: (i - j) % dilation == 0 and abs(i - j) < size * dilation,
    )


def test_dilation_one_equals_the_window():
    assert masks.Dilated(3, 1).draw(7) == masks.Window(3).draw(7)


@pytest.mark.parametrize("arguments, bad", [((0, 2), "size=0"), ((2, 0), "dilation=0")])
def test_dilated_arguments_are_checked(arguments, bad):
    with pytest.raises(ValueError, match=rf"Dilated\({bad}\)"):
        masks.Dilated(*arguments)


def rule(height, width, grid, prefix):
    """Return the rule by definition, from a list of the row and column of every token."""
    cells = ["prefix"] * prefix + list(itertools.product(range(grid[0]), range(grid[1])))

    def allows(i, j):
        a, b = (cells[k] if k < len(cells) else None for k in (i, j))
        if "prefix" in (a, b):
            return True
        if a is None or b is None:
            return False
        return abs(a[0] - b[0]) < height and abs(a[1] - b[1]) < width

    return allows


@pytest.mark.parametrize("grid", [(2, 3), (3, 2), (5, 4), (1, 7), (13, 1)])
@pytest.mark.parametrize("prefix", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 2, (1, 2), (3, 1), 9])
def test_neighbours_in_rows_and_columns(size, grid, prefix):
    height, width = size if isinstance(size, tuple) else (size, size)
    assert_is(masks.Window2D(size, grid, prefix), rule(height, width, grid, prefix))


def test_a_token_inside_sees_a_square():
    shown = masks.materialize(masks.Window2D(3, (9, 9)), range(81), range(81))
    np.testing.assert_array_equal(
        np.reshape(shown[0, 0, 4 * 9 + 5], (9, 9)),
        [[2 <= r <= 6 and 3 <= c <= 7 for c in range(9)] for r in range(9)],
    )
    assert np.sum(shown[0, 0, 0]) == 9  # in the corner


def test_the_right_border_is_not_next_to_the_left():
    mask = masks.Window2D(2, (3, 3), prefix=1)
    assert not mask.allows(3, 4) and mask.allows(3, 6)


def test_size_gives_rows_first():
    assert_is(
        masks.Window2D((1, 9), (4, 5)),
        lambda i, j: i < 20 and j < 20 and i // 5 == j // 5,
    )


def test_the_prefix_can_be_hidden():
    mask = masks.Window2D(1, (2, 2), prefix=1) & ~masks.Global(1)
    assert mask.draw(4).splitlines()[2:5] == ["0   · · · ·", "1   · ■ · ·", "2   · · ■ ·"]


def test_lists_and_numpy_become_tuples_of_ints():
    mask = masks.Window2D([np.int64(2), 3], np.array([4, 5]).tolist())
    assert mask == masks.Window2D((2, 3), (4, 5)) and hash(mask) == hash(
        masks.Window2D((2, 3), (4, 5))
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, (2, 2)), r"size=0\): size must"),
        (((1, 0), (2, 2)), r"size=0\): size must"),
        (((1, 2, 3), (2, 2)), r"size=\(1, 2, 3\)\): size must be \(rows, columns\)"),
        ((1.5, (2, 2)), r"size=1.5\)"),
        ((1, 4), r"grid=4\): grid must be \(rows, columns\)"),
        ((1, (4,)), r"grid=\(4,\)\): grid must be \(rows, columns\)"),
        ((1, (4, 0)), r"grid=0\): grid must"),
        ((1, (4, 4), -1), r"prefix=-1\): prefix must .* at least 0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"Window2D\({message}"):
        masks.Window2D(*arguments)
