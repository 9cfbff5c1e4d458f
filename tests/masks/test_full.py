from keras_attention import masks
from tests.masks.definition import assert_is


def test_everything_is_visible():
    assert_is(masks.Full(), lambda i, j: True)
