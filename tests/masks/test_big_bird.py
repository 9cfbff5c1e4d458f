import numpy as np
import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size, window, tokens, drawn", [(1, 3, 2, 4), (2, 1, 1, 2), (3, 3, 1, 2)])
def test_window_global_and_random_blocks(size, window, tokens, drawn):
    """Compare blocks with section 2 and figure 3 of Zaheer et al. (2020)."""
    length, seed = 17, 5
    blocks = -(-length // size)
    random = np.random.RandomState(seed)
    table = np.zeros((99, 99), bool)
    for i in range(99):
        table[i, max(0, i - window // 2) : i + window // 2 + 1] = True
    table[:tokens] = table[:, :tokens] = True
    for i in range(blocks):
        free = [j for j in range(tokens, blocks) if abs(i - j) > window // 2]
        table[i, random.permutation(free)[:drawn]] = True
    mask = masks.BigBird(length, size, window, tokens, drawn, seed)
    assert_is(mask, lambda i, j: table[i // size, j // size])


def test_the_number_of_visible_blocks_is_constant():
    """Check that each block sees 3 neighbours, 2 global and 3 random blocks at any length."""
    for length in (320, 640):
        cells = masks.materialize(masks.BigBird(length, 16), range(length), range(length))
        rows = np.asarray(cells)[0, 0].sum(axis=1)
        assert np.all(rows[:32] == length) and np.all(rows[48:-16] == 8 * 16)
        assert np.all(rows[32:48] == 7 * 16) and np.all(rows[-16:] == 7 * 16)  # at a border


def test_each_seed_gives_another_pattern():
    assert len({masks.BigBird(64, 2, seed=seed).draw(64) for seed in range(4)}) == 4


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"length": 0}, r"length=0\): length must"),
        ({"block_size": 0}, r"block_size=0\)"),
        ({"num_window_blocks": 2}, r"num_window_blocks=2\): num_window_blocks must be odd"),
        ({"num_global_blocks": 0}, r"num_global_blocks=0\)"),
        ({"length": 98}, r"length=98, block_size=14\) has 7 blocks.* are 8\. .*above 98"),
        ({"seed": -1}, r"seed=-1\): seed must .* at least 0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"BigBird\({message}"):
        masks.BigBird(**{"length": 112, "block_size": 14} | arguments)
