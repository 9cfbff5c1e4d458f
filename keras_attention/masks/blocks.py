"""Masks on blocks of tokens: chunks, any mask applied to blocks, and block-sparse tables."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import NOTHING, Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Chunked(Mask, Part):
    """A mask of chunks: key j is visible to query i when i // size == j // size.

    A token sees only its own chunk. Llama 4 uses `Causal() & Chunked(8192)` in most of its layers.

    Args:
        size: int, at least 1, the number of tokens in a chunk.

    ```python
    import keras_attention as ka

    mask = ka.masks.Chunked(2)
    assert mask.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ·", "2   · · ■"]
    ```
    """

    size: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "size")

    def allows(self, i, j):
        return ops.equal(i // self.size, j // self.size)

    def reach(self):
        return Reach(self.size - 1, self.size - 1)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Blockwise(Mask, Part):
    """Applies another mask to blocks of tokens: `mask` decides which blocks a block sees.

    Key j is visible to query i when `mask` allows key j // size for query i // size. For example,
    `Blockwise(Window(2), 64)` is a window of three blocks: the query's own block and one on each
    side.

    Args:
        mask: a mask that is applied to block indices instead of token positions.
        size: int, at least 1, the number of tokens in a block.

    ```python
    import keras_attention as ka

    mask = ka.masks.Blockwise(ka.masks.Causal(), 2)
    assert mask.draw(3, 4).splitlines()[2:] == ["0   ■ ■ · ·", "1   ■ ■ · ·", "2   ■ ■ ■ ■"]
    ```
    """

    mask: Mask
    size: int

    def __post_init__(self):
        if not isinstance(self.mask, Mask):
            raise ValueError(
                f"Blockwise(mask={self.mask!r}): mask must be a mask, such as Window(2)."
            )
        checks.check_whole_numbers(self, "size")

    def allows(self, i, j):
        return self.mask.allows(i // self.size, j // self.size)

    def reach(self):
        return self.mask.reach().in_blocks(self.size)

    def outside(self):
        return self.mask.outside().in_blocks(self.size)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class BlockSparse(Mask, Part):
    """A block-sparse mask: a table says which blocks of tokens see which (Child et al., 2019, 5.5).

    Key j is visible to query i when `table[i // block_size][j // block_size]` is true. Tokens
    beyond the end of the table see no keys and are hidden from all queries.

    Args:
        table: nested lists or tuples, or a NumPy array, of bools or of zeros and ones. It has a
            row for each block of queries and a column for each block of keys. It is stored as
            nested tuples.
        block_size: int, at least 1, the number of tokens in a block.

    ```python
    import keras_attention as ka

    mask = ka.masks.BlockSparse([[1, 0], [0, 1]], block_size=2)
    assert mask.draw(3, 4).splitlines()[2:] == ["0   ■ ■ · ·", "1   ■ ■ · ·", "2   · · ■ ■"]
    ```
    """

    table: tuple
    block_size: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "block_size")
        object.__setattr__(self, "table", _rows(self.table))

    def __str__(self):
        rows, columns = len(self.table), len(self.table[0])
        return f"BlockSparse({rows} x {columns} blocks, block_size={self.block_size})"

    def allows(self, i, j):
        rows, columns = len(self.table), len(self.table[0])
        table = np.pad(np.array(self.table), ((0, 1), (0, 1)))  # tokens after the table are hidden
        i = ops.minimum(i // self.block_size, rows)
        j = ops.minimum(j // self.block_size, columns)
        return ops.take(ops.convert_to_tensor(table.ravel()), i * (columns + 1) + j)

    def reach(self):
        i, j = np.nonzero(self.table)
        if not i.size:
            return NOTHING
        return Reach(int(max(i - j)), int(max(j - i))).in_blocks(self.block_size)


def _rows(table):
    try:
        array = np.array(table)
    except ValueError:  # rows of unequal length
        array = np.zeros(0)
    if array.ndim != 2 or not array.size or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"BlockSparse(table={table!r}): table must be rows of bools, equally long. Give one "
            "row for each block of queries, with one entry for each block of keys."
        )
    return tuple(tuple(map(bool, row)) for row in array)
