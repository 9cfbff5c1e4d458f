import numpy as np
import pytest

from keras_attention import masks
from keras_attention.masks.random_keys import draw_keys
from tests.masks.definition import assert_is


def seen(mask, length):
    return np.asarray(masks.materialize(mask, range(length), range(length)))[0, 0]


@pytest.mark.parametrize("arguments", [(1, 1), (2, 7), (3, 11, 4), (5, 5, 1), (2, 9, 0, 2, 1)])
def test_drawn_keys_are_visible(arguments):
    mask = masks.Random(*arguments)
    keys = draw_keys(mask)
    assert keys.shape == (mask.length, mask.num_keys)
    assert_is(mask, lambda i, j: i < mask.length and j in keys[i])


@pytest.mark.slow
@pytest.mark.parametrize("min_distance, start", [(0, 0), (1, 0), (3, 0), (0, 5), (2, 4)])
def test_keys_are_far_away_and_after_the_start(min_distance, start):
    drawn = sum(
        seen(masks.Random(2, 12, seed, min_distance, start), 12).astype(int) for seed in range(99)
    )
    i, j = np.arange(12)[:, None], np.arange(12)[None]
    np.testing.assert_array_equal(drawn > 0, (abs(i - j) >= min_distance) & (j >= start))


def test_every_query_sees_num_keys_different_keys():
    cells = seen(masks.Random(3, 50), 60)
    np.testing.assert_array_equal(cells.sum(axis=1), [3] * 50 + [0] * 10)
    assert not cells[:, 50:].any()


def test_the_keys_of_a_seed_never_change():
    """Compare with stored keys, because a saved model must always see the same keys."""
    cells = seen(masks.Random(2, 6, seed=1), 6)
    written = [[1, 2], [2, 4], [0, 2], [3, 5], [1, 5], [3, 5]]
    assert [np.flatnonzero(row).tolist() for row in cells] == written


def test_seeds_differ():
    drawn = {masks.Random(2, 30, seed).draw(30) for seed in range(5)}
    assert len(drawn) == 5


def test_all_keys_are_equally_likely():
    drawn = (masks.Random(2, 10, seed) for seed in range(400))
    counts = sum(np.any(draw_keys(mask)[..., None] == np.arange(10), 1) for mask in drawn)
    # 80 expected in each of 100 cells, standard deviation 8
    assert counts.min() > 40 and counts.max() < 120


def test_a_longer_memory_does_not_change_earlier_keys():
    mask = masks.Random(2, 12)
    np.testing.assert_array_equal(seen(mask, 5), seen(mask, 12)[:5, :5])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 4), r"num_keys=0\)"),
        ((1, 0), r"length=0\)"),
        ((3, 2), r"length=2\): num_keys=3 keys.* at least 3"),
        ((2, 9, 0, 3, 3), r"length=9\): num_keys=2 keys, 5 nearer .* and 3 before .* at least 10"),
        ((1, 2, -1), r"seed=-1\): seed must .* at least 0"),
        ((1, 2, 0, -1), r"min_distance=-1\)"),
        ((1, 2, 0, 0, -1), r"start=-1\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"Random\({message}"):
        masks.Random(*arguments)
