import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_attention import masks
from keras_attention.masks import Reach
from tests.masks import strategies
from tests.masks.strategies import ANY
from tests.tables import assert_lists

LENGTH = 41  # longer than every bound below

PLAIN = [
    masks.Full(),
    masks.Causal(),
    ~masks.Causal(),
    masks.Window(1),
    masks.Window(5),
    masks.Dilated(3, 4),
    masks.Strided(3),
    masks.Prefix(0),
    masks.Prefix(3),
    masks.Global(2),
    masks.Global((9, 4)),
    masks.Chunked(1),
    masks.Chunked(6),
    masks.Window2D(2, (4, 5)),
    masks.Window2D((3, 2), (4, 5), prefix=2),
    masks.Window2D(9, (2, 3)),
    masks.BlockSparse([[0, 0], [1, 0], [0, 0]], 3),
    masks.BlockSparse(np.eye(4, k=2), 2),
    masks.BlockSparse([[0, 0]], 2),
    masks.Random(2, 11),
    masks.Random(1, 3, seed=5),
    masks.Blockwise(masks.Window(2), 4),
    masks.Blockwise(masks.Causal(), 4),
    masks.Blockwise(~masks.Causal(), 4),
    masks.Blockwise(masks.Global((1, 3)), 4),
    masks.Longformer(6, (0, 7), dilation=2),
    masks.BigBird(LENGTH, 1),
    masks.Window(3) | masks.Global(2),
    masks.Causal() & masks.Window(3),
    masks.Causal() & (masks.Window(4) | masks.Global((5,))),
    masks.Random(2, 15, 3, min_distance=3, start=2),
]

DERIVED = {
    masks.Full(): Reach(None, None),
    ~masks.Full(): Reach(0, -1),
    ~~masks.Window(3): Reach(2, 2),
    ~masks.Window(3): Reach(None, None),
    masks.Causal() & masks.Window(3): Reach(2, 0),
    masks.Causal() & masks.Full(): Reach(None, 0),
    masks.Causal() | masks.Window(3): Reach(None, 2),
    masks.Window(3) | masks.Chunked(8): Reach(7, 7),
    masks.Window(3) | masks.Strided(8): Reach(None, None),
    masks.Window(3) & masks.Strided(8): Reach(2, 2),
    masks.Causal() & ~masks.Causal(): Reach(0, -1),
    ~(masks.Causal() | masks.Strided(2)): Reach(-1, None),
    ~(masks.Causal() & masks.Full()): Reach(-1, None),
    masks.Window(3) & ~masks.Causal(): Reach(-1, 2),
    masks.Window(3) | masks.Global(2) | masks.Global((7,)): Reach(2, 2, (0, 1, 7)),
    masks.Causal() & masks.Window(3) | masks.Global((7, 2)): Reach(2, 0, (2, 7)),
    masks.Causal() & (masks.Window(3) | masks.Global(1)): Reach(2, 0, (0,)),
    masks.Causal() | masks.Prefix(2): Reach(None, 0, (0, 1)),
    masks.Full() | masks.Global(2): Reach(None, None),
    masks.Full() & masks.Global(2): Reach(0, -1, (0, 1)),
    masks.Global(2) & masks.Window(3): Reach(0, -1, (0, 1)),
    masks.Blockwise(masks.Window(2) | masks.Global(1), 4): Reach(7, 7, (0, 1, 2, 3)),
    masks.Blockwise(masks.Global(1), 2): Reach(0, -1, (0, 1)),
    ~masks.Blockwise(masks.Causal(), 4): Reach(-1, None),
    masks.Longformer(512, 2): Reach(256, 256, (0, 1)),
}


def test_there_is_a_test_of_the_reach_of_every_mask():
    classes = set(masks.NAMES.values())
    assert_lists("PLAIN of tests/masks/test_reach.py", classes & set(map(type, PLAIN)), classes)


def test_the_strategy_generates_every_mask():
    """Check the masks that ANY generates."""
    classes, drawn = set(masks.NAMES.values()) - {masks.Blockwise}, set()  # part of ANY

    @settings(max_examples=500, database=None)
    @given(strategies.PLAIN)
    def draw(mask):
        drawn.add(type(mask))

    draw()
    assert_lists("PLAIN of tests/masks/strategies.py", classes & drawn, classes)


def pairs(mask, query_positions, key_positions):
    """Return the pairs (i, j) that `mask` allows."""
    allowed = masks.materialize(mask, query_positions, key_positions)
    shape = (len(query_positions), len(key_positions))
    rows, columns = np.nonzero(np.ones(shape) if allowed is None else np.asarray(allowed)[0, 0])
    return [(query_positions[t], key_positions[s]) for t, s in zip(rows, columns, strict=True)]


def between(band, i, j):
    left, right = band
    return (left is None or -left <= j - i) and (right is None or j - i <= right)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(ANY, *4 * [st.integers(0, 24)])
def test_every_allowed_pair_is_in_the_band_or_has_a_global_token(mask, t, s, query, key):
    band, tokens = mask.band(), mask.global_tokens()
    for i, j in pairs(mask, range(query, query + t + 1), range(key, key + s + 1)):
        assert between(band, i, j) or i in tokens or j in tokens


@settings(max_examples=50)
@given(ANY)
def test_a_mask_or_its_opposite_reaches_every_pair(mask):
    for side in (mask, ~mask):
        assert side.outside() == (~side).reach()
        assert (side.band(), side.global_tokens()) == (side.band(), side.reach().tokens)
    together = mask.reach() | (~mask).reach()
    for i, j in pairs(masks.Full(), range(9), range(9)):
        tokens = together.tokens
        assert between((together.left, together.right), i, j) or i in tokens or j in tokens


@pytest.mark.parametrize("mask", PLAIN, ids=str)
def test_bounds_are_tight(mask):
    band, tokens = mask.band(), mask.global_tokens()
    seen = pairs(mask, range(LENGTH), range(LENGTH))
    steps = [j - i for i, j in seen if i not in tokens and j not in tokens]
    if not steps:
        assert band == (0, -1)
    else:
        for side, farthest in zip(band, (-min(steps), max(steps)), strict=True):
            tight = farthest > LENGTH - 3 if side is None else farthest == side
            assert tight, (
                f"band() is {band}, and the farthest of {LENGTH} positions is {farthest}: bound "
                f"the mask with reach(), or list one that sees a key {LENGTH - 2} or more away"
            )
    beyond = [pair for pair in seen if not between(band, *pair)]
    for token in tokens:
        other_tokens = set(tokens) - {token}
        assert any(token in pair and not other_tokens & {*pair} for pair in beyond)


@pytest.mark.parametrize("mask", DERIVED, ids=str)
def test_combinations_have_the_reach_of_their_pairs(mask):
    assert mask.reach() == DERIVED[mask]
    assert mask.band() == (DERIVED[mask].left, DERIVED[mask].right)
    assert mask.global_tokens() == DERIVED[mask].tokens


def test_a_mask_without_reach_is_unbounded():
    assert masks.Mask().band() == (None, None) and masks.Mask().global_tokens() == ()
    assert (~masks.Mask()).reach() == Reach()


def test_equal_bounds_compare_equal():
    assert Reach(3, -7) == Reach(0, -1) == Reach(-1, 0)
    assert Reach(1, 1, [5, 2, 5]).tokens == (2, 5)
    assert Reach(tokens=(1, 2)) == Reach()
