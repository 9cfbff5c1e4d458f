import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("stride", [1, 2, 3, 13])
def test_keys_are_a_stride_apart(stride):
    assert_is(masks.Strided(stride), lambda i, j: (i - j) % stride == 0)


def test_the_pattern_of_the_sparse_transformer():
    """Compare with Child et al. (2019), section 4.2.

    A1 = {t, ..., i} with t = max(0, i - l), and A2: (i - j) mod l. Their window and ours of size
    l + 1 contain l + 1 keys with the query's own.
    """
    length = 4
    assert_is(
        masks.Causal() & (masks.Window(length + 1) | masks.Strided(length)),
        lambda i, j: j <= i and (j >= max(0, i - length) or (i - j) % length == 0),
    )


def test_stride_is_checked():
    with pytest.raises(ValueError, match=r"Strided\(stride=0\)"):
        masks.Strided(0)
