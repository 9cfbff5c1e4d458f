import itertools

import keras
import numpy as np
import pytest

import keras_attention as ka
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
def test_masks_have_four_axes(mask, queries, keys, shape):
    allowed = masks.materialize(mask, np.zeros(queries, "int64"), np.zeros(keys, "int32"))
    assert allowed.shape == shape


def test_decoding_with_a_cache_sees_the_same_keys():
    mask = masks.Causal() & masks.Window(3)
    whole = masks.materialize(mask, range(11), range(11))
    step = masks.materialize(mask, [7, 8], range(11))
    np.testing.assert_array_equal(step, whole[:, :, 7:9])


def test_each_row_has_its_own_positions():
    allowed = masks.materialize(masks.Causal(), [[0, 1], [5, 6]], [[0, 1], [1, 6]])
    np.testing.assert_array_equal(allowed[:, 0], [[[1, 0], [1, 1]], [[1, 0], [1, 1]]])


def test_positions_of_a_wrong_rank_are_an_error():
    with pytest.raises(ValueError, match=r"\(2, 1, 5\)\. Give \(length,\) or \(batch, length\)"):
        masks.materialize(masks.Causal(), np.zeros((2, 1, 5)), range(5))


SEGMENTS = np.array([[1, 1, 2, 2, 0], [1, 2, 2, 3, 3]])
KEY_SEGMENTS = np.array([[1, 2, 2, 0, 0, 1, 3], [3, 3, 0, 2, 1, 1, 0]])


def test_padding_hides_keys():
    value_mask = np.array([[True, True, False], [True, False, False]])
    mask = masks.padding(value_mask)
    np.testing.assert_array_equal(mask, value_mask.reshape(2, 1, 1, 3))


def test_padding_accepts_zeros_and_ones():
    np.testing.assert_array_equal(masks.padding(np.array([[1, 0]])), [[[[True, False]]]])


@pytest.mark.parametrize("keys", [None, KEY_SEGMENTS])
def test_documents_see_themselves_and_padding_sees_no_key(keys):
    mask = np.asarray(masks.same_segment(SEGMENTS, keys))
    keys = SEGMENTS if keys is None else keys
    assert mask.shape == (2, 1, 5, keys.shape[1]) and mask.dtype == bool
    for b, t, s in itertools.product(range(2), range(5), range(keys.shape[1])):
        expected = SEGMENTS[b, t] == keys[b, s] and SEGMENTS[b, t] != 0
        assert mask[b, 0, t, s] == expected


def test_only_key_segments_are_an_error():
    with pytest.raises(ValueError, match="key_segments came without query_segments"):
        masks.same_segment(None, KEY_SEGMENTS)


def test_positions_start_again_with_each_document():
    segments = np.array([[1, 1, 1, 2, 2, 0], [3, 3, 1, 0, 2, 3], [0, 0, 4, 4, 4, 4]])
    positions = masks.positions_in_segments(segments)
    assert positions.dtype == "int32"
    expected = [
        [list(row[:t]).count(row[t]) if row[t] else 0 for t in range(6)] for row in segments
    ]
    np.testing.assert_array_equal(positions, expected)


def test_packed_documents_give_the_same_as_single_ones():
    layer = ka.attention.MultiHeadAttention(
        2,
        4,
        position=["rotary", "alibi"],
        mask=masks.Causal() & (masks.Window(2) | masks.Global(1)),
    )
    x = np.random.default_rng(0).normal(size=(1, 8, 6)).astype("float32")
    segments = np.array([[1, 1, 1, 1, 2, 2, 2, 0]])
    positions = masks.positions_in_segments(segments)
    where = {"query_positions": positions, "value_positions": positions}
    packed = layer(x, x, segment_ids=segments, **where)
    for start, end in ((0, 4), (4, 7)):
        document = x[:, start:end]
        np.testing.assert_allclose(packed[:, start:end], layer(document, document), atol=1e-6)


@pytest.mark.parametrize("positions", [np.arange(7), np.array([[0, 1, 2, 5, 6, 3, 4]] * 3)])
def test_each_row_has_a_prefix_of_its_own(positions):
    lengths = np.array([0, 2, 7])
    mask = np.asarray(masks.prefix_lengths(lengths, positions))
    assert mask.shape == (3, 1, 1, 7) and mask.dtype == bool
    for b, s in itertools.product(range(3), range(7)):
        where = positions[s] if positions.ndim == 1 else positions[b, s]
        assert mask[b, 0, 0, s] == (where < lengths[b])


def test_a_prefix_language_model_with_prompts_of_different_lengths():
    """Compare with `Causal() | Prefix(length)`, row by row (Raffel et al., 2020, figure 4)."""
    x = np.random.default_rng(0).normal(size=(3, 5, 6)).astype("float32")
    layer = ka.attention.MultiHeadAttention(2, 4)
    causal = masks.materialize(masks.Causal(), range(5), range(5))
    visible = masks.any_of(causal, masks.prefix_lengths(np.array([0, 2, 4]), range(5)))
    _, weights = layer(x, x, attention_mask=visible, return_attention_scores=True)
    for b, length in enumerate((0, 2, 4)):
        part = masks.materialize(masks.Causal() | masks.Prefix(length), range(5), range(5))
        np.testing.assert_array_equal(np.asarray(weights)[b] > 0, [np.asarray(part)[0, 0]] * 2)


def test_data_masks_in_a_model_of_unknown_length():
    ids = keras.Input((None,), dtype="int32")
    lengths = keras.Input((), dtype="int32")
    segments = keras.Input((None,), dtype="int32")
    positions = masks.positions_in_segments(segments)
    causal = masks.materialize(masks.Causal(), positions, positions)
    visible = masks.any_of(causal, masks.prefix_lengths(lengths, positions))
    visible = masks.all_of(visible, masks.same_segment(segments), masks.padding(ids))
    model = keras.Model([ids, lengths, segments], visible)
    for array in (SEGMENTS, SEGMENTS[:, :3]):
        result = model([array, np.array([2, 1]), array])
        length = array.shape[1]
        assert result.shape == (2, 1, length, length)
        for b, t, s in itertools.product(range(2), range(length), range(length)):
            same = array[b, t] == array[b, s] != 0
            place = list(array[b, :s]).count(array[b, s])
            assert result[b, 0, t, s] == (same and (s <= t or place < (2, 1)[b]))


@pytest.mark.parametrize("lengths", [3, [[1], [2]]])
def test_prefix_lengths_are_one_for_each_row(lengths):
    with pytest.raises(ValueError, match=r"lengths must be of shape \(batch,\).*received"):
        masks.prefix_lengths(np.array(lengths), range(5))


def test_any_of_is_the_union():
    random = np.random.default_rng(0)
    a, b = random.random((2, 1, 1, 7)) < 0.5, random.random((1, 1, 5, 7)) < 0.5
    np.testing.assert_array_equal(masks.any_of(a, b), a | b)
    np.testing.assert_array_equal(masks.any_of(a), a)
    assert masks.any_of(a, None) is None
    with pytest.raises(ValueError, match="got no mask"):
        masks.any_of()


def test_all_of_is_the_intersection():
    random = np.random.default_rng(0)
    a, b = random.random((2, 1, 1, 7)) < 0.5, random.random((1, 1, 5, 7)) < 0.5
    np.testing.assert_array_equal(masks.all_of(a, None, b), a & b)
    np.testing.assert_array_equal(masks.all_of(None, b), b)


def test_none_gives_none():
    assert masks.all_of() is None and masks.all_of(None, None) is None
    assert masks.padding(None) is None and masks.same_segment(None) is None


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: masks.padding(np.ones(3)), r"value_mask must be of shape \(batch, length\)"),
        (lambda: masks.same_segment(np.ones(3)), r"query_segments must be of shape"),
        (lambda: masks.same_segment(np.ones((2, 3)), np.ones((3, 3))), "with 2 rows and .* with 3"),
        (lambda: masks.positions_in_segments(np.ones(3)), "segments must be of shape"),
        (lambda: masks.prefix_lengths(np.ones(2), np.zeros((3, 4))), "lengths with 2 rows"),
        (
            lambda: masks.materialize(masks.Causal(), np.zeros((2, 4)), np.zeros((3, 4))),
            "queries have 2 rows, and those of keys 3",
        ),
    ],
)
def test_mask_functions_refuse_mismatched_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
