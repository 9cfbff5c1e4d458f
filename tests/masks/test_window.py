import numpy as np
import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_key_is_visible_when_it_is_nearer_than_size(size):
    assert_is(masks.Window(size), lambda i, j: abs(i - j) < size)


def test_with_causal_it_shows_size_keys():
    shown = masks.materialize(masks.Causal() & masks.Window(3), range(11), range(11))
    np.testing.assert_array_equal(np.sum(shown[0, 0], axis=-1), [1, 2] + 9 * [3])


@pytest.mark.parametrize("size", [0, -1, 2.5, "3", None, True])
def test_size_is_checked(size):
    with pytest.raises(ValueError, match=rf"Window\(size={size!r}\): size must .* at least 1"):
        masks.Window(size)


def test_a_numpy_size_becomes_an_int():
    assert type(masks.Window(np.int64(3)).size) is int
