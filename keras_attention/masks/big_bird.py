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
    """BigBird's mask: a block of tokens sees neighboring, global and random blocks.

    The mask equals `Blockwise(Window(...) | Global(...) | Random(...), block_size)`, the internal
    transformer construction (ITC) of Zaheer et al. (2020, section 2). The defaults match their base
    model. As in their code, random blocks are neither in the window nor global. Inputs may be
    shorter or longer than `length`. Tokens at position `length` or later have no random blocks.

    Args:
        length: int, the number of tokens that have random blocks. It must have room for all
            window, global and random blocks.
        block_size: int, at least 1, the number of tokens in a block.
        num_window_blocks: int, odd, the number of blocks in the window, which is centered on the
            query's own block.
        num_global_blocks: int, at least 1. That many first blocks see and are seen by all blocks.
        num_random_blocks: int, at least 1, the number of random blocks that each block sees.
        seed: int, at least 0, for the random blocks. As in the paper, use a different seed in
            each layer.

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
                f"odd, such as {self.num_window_blocks + 1}."
            )
        needed = self.num_window_blocks + self.num_global_blocks + self.num_random_blocks
        if self._num_blocks() < needed:
            raise ValueError(
                f"BigBird(length={self.length}, block_size={self.block_size}) has "
                f"{self._num_blocks()} blocks, but window, global and random blocks are {needed}. "
                f"Choose a length above {(needed - 1) * self.block_size}, or smaller or fewer "
                "blocks."
            )

    def parts(self):
        size, tokens = self.num_window_blocks // 2 + 1, self.num_global_blocks
        random = Random(self.num_random_blocks, self._num_blocks(), self.seed, size, start=tokens)
        return Blockwise(Window(size) | Global(tokens) | random, self.block_size)

    def _num_blocks(self):
        return -(-self.length // self.block_size)
