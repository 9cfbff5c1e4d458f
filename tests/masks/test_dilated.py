import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size, dilation", [(1, 3), (2, 2), (3, 2), (2, 5), (4, 1)])
def test_keys_are_dilation_apart(size, dilation):
    assert_is(
        masks.Dilated(size, dilation),
        lambda i, j: (i - j) % dilation == 0 and abs(i - j) < size * dilation,
    )


def test_dilation_one_is_the_window():
    assert masks.Dilated(3, 1).draw(7) == masks.Window(3).draw(7)


@pytest.mark.parametrize("arguments, bad", [((0, 2), "size=0"), ((2, 0), "dilation=0")])
def test_arguments_are_checked(arguments, bad):
    with pytest.raises(ValueError, match=rf"Dilated\({bad}\)"):
        masks.Dilated(*arguments)
