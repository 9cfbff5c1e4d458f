import numpy as np
import pytest

from keras_attention import masks


@pytest.mark.parametrize("mask", [None, masks.Full()])
def test_nothing_to_hide_is_none(mask):
    assert masks.materialize(mask, range(3), range(3)) is None


@pytest.mark.parametrize(
    "queries, keys, shape",
    [
        ((5,), (7,), (1, 1, 5, 7)),
        ((2, 5), (2, 7), (2, 1, 5, 7)),
        ((5,), (2, 7), (2, 1, 5, 7)),
        ((2, 5), (7,), (2, 1, 5, 7)),
        ((1,), (1,), (1, 1, 1, 1)),
    ],
)
@pytest.mark.parametrize("mask", [masks.Causal(), masks.Prefix(2), ~masks.Prefix(2)])
def test_shape(mask, queries, keys, shape):
    allowed = masks.materialize(mask, np.zeros(queries, "int64"), np.zeros(keys, "int32"))
    assert allowed.shape == shape


def test_decoding_with_a_cache_sees_what_the_whole_sequence_would():
    mask = masks.Causal() & masks.Window(3)
    whole = masks.materialize(mask, range(11), range(11))
    step = masks.materialize(mask, [7, 8], range(11))
    np.testing.assert_array_equal(step, whole[:, :, 7:9])


def test_each_row_has_its_own_positions():
    allowed = masks.materialize(masks.Causal(), [[0, 1], [5, 6]], [[0, 1], [1, 6]])
    np.testing.assert_array_equal(allowed[:, 0], [[[1, 0], [1, 1]], [[1, 0], [1, 1]]])


def test_positions_of_a_wrong_rank_are_an_error():
    with pytest.raises(ValueError, match=r"shape \(length,\) or \(batch, length\); received"):
        masks.materialize(masks.Causal(), np.zeros((2, 1, 5)), range(5))
