import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_chunks_do_not_see_one_another(size):
    assert_is(masks.Chunked(size), lambda i, j: i // size == j // size)


def test_size_is_checked():
    with pytest.raises(ValueError, match=r"Chunked\(size=0\)"):
        masks.Chunked(0)
