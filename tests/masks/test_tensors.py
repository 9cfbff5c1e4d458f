import itertools

import numpy as np
import pytest

from keras_attention import masks

SEGMENTS = np.array([[1, 1, 2, 2, 0], [1, 2, 2, 3, 3]])
KEY_SEGMENTS = np.array([[1, 2, 2, 0, 0, 1, 3], [3, 3, 0, 2, 1, 1, 0]])


def test_padding_hides_keys():
    value_mask = np.array([[True, True, False], [True, False, False]])
    mask = masks.padding(value_mask)
    np.testing.assert_array_equal(mask, value_mask.reshape(2, 1, 1, 3))


def test_padding_takes_zeros_and_ones():
    np.testing.assert_array_equal(masks.padding(np.array([[1, 0]])), [[[[True, False]]]])


@pytest.mark.parametrize("keys", [None, KEY_SEGMENTS])
def test_documents_see_themselves_and_padding_nothing(keys):
    mask = np.asarray(masks.same_segment(SEGMENTS, keys))
    keys = SEGMENTS if keys is None else keys
    assert mask.shape == (2, 1, 5, keys.shape[1]) and mask.dtype == bool
    for b, t, s in itertools.product(range(2), range(5), range(keys.shape[1])):
        expected = SEGMENTS[b, t] == keys[b, s] and SEGMENTS[b, t] != 0
        assert mask[b, 0, t, s] == expected


def test_key_segments_alone_are_an_error():
    with pytest.raises(ValueError, match="key_segments came without query_segments"):
        masks.same_segment(None, KEY_SEGMENTS)


def test_all_of_ands_what_is_there():
    random = np.random.default_rng(0)
    a, b = random.random((2, 1, 1, 7)) < 0.5, random.random((1, 1, 5, 7)) < 0.5
    np.testing.assert_array_equal(masks.all_of(a, None, b), a & b)
    np.testing.assert_array_equal(masks.all_of(None, b), b)


def test_nothing_is_nothing():
    assert masks.all_of() is None and masks.all_of(None, None) is None
    assert masks.padding(None) is None and masks.same_segment(None) is None
