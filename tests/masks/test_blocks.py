import numpy as np
import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_chunks_do_not_see_one_another(size):
    assert_is(masks.Chunked(size), lambda i, j: i // size == j // size)


def test_chunk_size_is_checked():
    with pytest.raises(ValueError, match=r"Chunked\(size=0\)"):
        masks.Chunked(0)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_the_mask_applies_to_blocks(size):
    assert_is(
        masks.Blockwise(masks.Causal() & masks.Window(2), size),
        lambda i, j: 0 <= i // size - j // size < 2,
    )


def test_blocks_of_one_token_give_the_mask_itself():
    mask = masks.Window(2) | masks.Global((3,))
    assert masks.Blockwise(mask, 1).draw(7) == mask.draw(7)


def test_chunks_are_blocks_that_see_themselves():
    assert masks.Blockwise(masks.Window(1), 3).draw(7) == masks.Chunked(3).draw(7)


@pytest.mark.parametrize(
    "mask, size, bad", [("causal", 2, "mask='causal'"), (None, 0, "mask=None")]
)
def test_the_mask_is_checked(mask, size, bad):
    with pytest.raises(ValueError, match=rf"Blockwise\({bad}\): mask must be a mask"):
        masks.Blockwise(mask, size)


def test_the_size_is_checked():
    with pytest.raises(ValueError, match=r"Blockwise\(size=0\)"):
        masks.Blockwise(masks.Causal(), 0)


TABLE = [[1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_the_table_decides_which_blocks_see_which(size):
    def rule(i, j):
        row, column = i // size, j // size
        return row < 3 and column < 5 and TABLE[row][column]

    assert_is(masks.BlockSparse(TABLE, size), rule)


@pytest.mark.parametrize(
    "table", [np.array(TABLE), np.array(TABLE, bool), np.array(TABLE, float), tuple(TABLE)]
)
def test_tables_in_all_forms_are_equal(table):
    mask = masks.BlockSparse(table, 2)
    assert mask == masks.BlockSparse(TABLE, 2) and hash(mask) == hash(masks.BlockSparse(TABLE, 2))
    assert mask.table[0] == (True, False, False, True, False)


@pytest.mark.parametrize(
    "table", [None, 3, [], [[]], [1, 0], [[1, 0], [1]], [[[1]]], [[0, 2]], [["1"]], "10"]
)
def test_the_table_is_checked(table):
    with pytest.raises(ValueError, match=r"BlockSparse\(table=.*rows of bools, equally long"):
        masks.BlockSparse(table, 2)


def test_the_block_size_is_checked():
    with pytest.raises(ValueError, match=r"BlockSparse\(block_size=0\)"):
        masks.BlockSparse(TABLE, 0)


def test_a_large_table_is_not_printed():
    mask = masks.Causal() & masks.BlockSparse(np.eye(64), 32)
    assert str(mask) == "(Causal() & BlockSparse(64 x 64 blocks, block_size=32))"
