"""The warping path is the cheapest of all paths, and tokens begin where attention moves on."""

import itertools

import numpy as np
import pytest

import keras_attention as ka

random = np.random.default_rng(0)


def list_paths(rows, columns):
    """Yield every path from (0, 0) to the last row and column."""
    if (rows, columns) == (1, 1):
        yield [(0, 0)]
        return
    for down, right in ((1, 1), (1, 0), (0, 1)):
        if rows > down and columns > right:
            for path in list_paths(rows - down, columns - right):
                yield [*path, (rows - 1, columns - 1)]


def compute_totals(costs):
    """Compute the recursion of Sakoe and Chiba, cell by cell."""
    totals = np.full((costs.shape[0] + 1, costs.shape[1] + 1), np.inf)
    totals[0, 0] = 0
    for i, j in itertools.product(*map(range, costs.shape)):
        before = min(totals[i, j], totals[i, j + 1], totals[i + 1, j])
        totals[i + 1, j + 1] = costs[i, j] + before
    return totals[1:, 1:]


def check_path(costs, rows, columns):
    assert (rows[0], columns[0]) == (0, 0)
    assert (rows[-1], columns[-1]) == (costs.shape[0] - 1, costs.shape[1] - 1)
    steps = np.stack([np.diff(rows), np.diff(columns)], axis=1)
    assert set(map(tuple, steps.tolist())) <= {(0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (4, 5), (5, 3)])
def test_path_is_the_cheapest_of_all_paths(shape):
    costs = random.normal(size=shape)
    rows, columns = ka.generation.find_warping_path(costs)
    check_path(costs, rows, columns)
    cheapest = min(sum(costs[cell] for cell in path) for path in list_paths(*shape))
    np.testing.assert_allclose(costs[rows, columns].sum(), cheapest, rtol=0, atol=1e-9)


def test_long_path_equals_the_recursion():
    costs = random.normal(size=(60, 150)) * 100
    rows, columns = ka.generation.find_warping_path(costs)
    check_path(costs, rows, columns)
    expected = compute_totals(costs)[-1, -1]
    np.testing.assert_allclose(costs[rows, columns].sum(), expected, rtol=0, atol=1e-6)


def test_equal_costs_move_diagonally():
    rows, columns = ka.generation.find_warping_path(np.zeros((3, 3)))
    assert rows.tolist() == columns.tolist() == [0, 1, 2]


def test_tokens_begin_where_the_attention_moves_on():
    """Three tokens of 10, 25 and 15 frames, in noise, with a frame that every token attends to."""
    begins, weights = [0, 10, 35, 50], random.random((4, 3, 50)) * 0.1
    for k in range(3):
        weights[:, k, begins[k] : begins[k + 1]] += 1.0
    weights[:, :, 49] = 5.0
    assert ka.generation.align_attention(weights).tolist() == begins[:3]


def test_alignment_equals_its_definition():
    """Compute the scores in loops over heads, tokens and frames, and the path cell by cell."""
    weights, width = random.random((2, 4, 9)), 3
    scores = np.zeros((4, 9))
    for head, i, j in itertools.product(range(2), range(4), range(9)):
        frames = [abs(k) if k < 9 else 16 - k for k in (j - 1, j, j + 1)]
        values = [
            (weights[head, i, k] - weights[head, :, k].mean()) / weights[head, :, k].std()
            for k in frames
        ]
        scores[i, j] += np.median(values) / 2
    totals = compute_totals(-scores)
    i, j, firsts = 3, 8, {}
    while True:
        firsts[i] = j
        if (i, j) == (0, 0):
            break
        cells = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((c for c in cells if min(c) >= 0), key=lambda c: totals[c])
    expected = [firsts[k] for k in range(4)]
    assert ka.generation.align_attention(weights, width).tolist() == expected


def test_rating_of_heads_equals_its_definition():
    weights = random.random((2, 3, 7))
    expected = np.zeros(2)
    for head, j in itertools.product(range(2), range(7)):
        expected[head] += sum(weights[head, i, j] ** 2 for i in range(3)) ** 0.5
    np.testing.assert_allclose(ka.generation.rate_heads(weights), expected, rtol=1e-12)


def test_heads_that_align_have_better_ratings():
    """Compare with an even head, and with one whose tokens all attend to the same frame."""
    align, even, same = (
        np.repeat(np.eye(3), 2, axis=1) / 2,
        np.full((3, 6), 1 / 6),
        np.eye(6)[[2] * 3],
    )
    ratings = ka.generation.rate_heads(np.stack([even, align, same]))
    np.testing.assert_allclose(ratings, [3**0.5, 3, 3**0.5])


def test_wrong_arguments_name_the_fix():
    with pytest.raises(ValueError, match=r"costs has the shape \(3,\): expected 2 axes"):
        ka.generation.find_warping_path(np.zeros(3))
    with pytest.raises(ValueError, match="and NaN: expected"):
        ka.generation.find_warping_path(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match=r"weights has the shape \(2, 3\): expected 3 axes"):
        ka.generation.rate_heads(np.ones((2, 3)))
    with pytest.raises(ValueError, match="filter_width=4.*Use 5"):
        ka.generation.align_attention(np.ones((1, 2, 9)), filter_width=4)
