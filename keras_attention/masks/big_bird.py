"""BigBird's mask: a window, global tokens and random keys, in blocks."""

import dataclasses

import keras

from keras_attention.core import checks
from keras_attention.masks.base import NamedMask
from keras_attention.masks.blocks import Blockwise
from keras_attention.masks.global_tokens import Global
from keras_attention.masks.random_keys import Random
from keras_attention.masks.window import Window


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class BigBird(NamedMask):
    """Blocks see neighbours, the first blocks, and some at random (Zaheer et al., 2020, section 2).

    Equal to `Blockwise(Window(...) | Global(...) | Random(...), block_size)`, the paper's internal
    transformer construction; the defaults are those of its base model. As in the authors' code, no
    random block falls into the window or on a global block. Inputs may be shorter than `length`, or
    longer: later tokens have no random blocks.

    Args:
        length: int: the number of tokens that random blocks are drawn for, and from; at least the
            window, the global and the random blocks together.
        block_size: int, at least 1: the number of tokens in a block.
        num_window_blocks: int, odd: the blocks in the window, the query's own in the middle.
        num_global_blocks, num_random_blocks: int, at least 1.
        seed: int, at least 0. The paper draws anew for each layer: give each layer its own seed.

    ```python
    import keras_attention as ka

    mask = ka.masks.BigBird(length=4096, seed=3)
    assert mask.allows(0, 4095) and mask.allows(4095, 0) and mask.allows(640, 767)
    ```
    """

    length: int
    block_size: int = 64
    num_window_blocks: int = 3
    num_global_blocks: int = 2
    num_random_blocks: int = 3
    seed: int = 0

    def __post_init__(self):
        checks.check_whole_numbers(
            self, *(f.name for f in dataclasses.fields(self) if f.name != "seed")
        )
        checks.check_whole_numbers(self, "seed", least=0)
        if self.num_window_blocks % 2 == 0:
            raise ValueError(
                f"BigBird(num_window_blocks={self.num_window_blocks}): num_window_blocks must be "
                "odd, as many on one side as on the other."
            )
        needed = self.num_window_blocks + self.num_global_blocks + self.num_random_blocks
        if self._num_blocks() < needed:
            raise ValueError(
                f"BigBird(length={self.length}, block_size={self.block_size}): that is "
                f"{self._num_blocks()} blocks, and window, global and random blocks are {needed}. "
                f"Choose a length above {(needed - 1) * self.block_size}, smaller blocks or fewer."
            )

    def parts(self):
        size, tokens = self.num_window_blocks // 2 + 1, self.num_global_blocks
        random = Random(self.num_random_blocks, self._num_blocks(), self.seed, size, start=tokens)
        return Blockwise(Window(size) | Global(tokens) | random, self.block_size)

    def _num_blocks(self):
        return -(-self.length // self.block_size)
