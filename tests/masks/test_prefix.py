import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("length", [0, 1, 4, 50])
def test_the_first_keys_are_visible(length):
    assert_is(masks.Prefix(length), lambda i, j: j < length)


def test_a_prefix_language_model():
    assert_is(masks.Causal() | masks.Prefix(3), lambda i, j: j <= i or j < 3)


@pytest.mark.parametrize("length", [-1, 1.0, None])
def test_length_is_checked(length):
    with pytest.raises(ValueError, match=rf"Prefix\(length={length!r}\).* at least 0"):
        masks.Prefix(length)
