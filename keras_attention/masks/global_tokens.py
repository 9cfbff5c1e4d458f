"""The global mask: a few tokens see all tokens and are seen by all tokens."""

import dataclasses
import functools

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Global(Mask, Part):
    """A mask for global tokens, which see all tokens and are seen by all (Beltagy et al., 2020).

    Key j is visible to query i when i or j is one of `tokens`. Longformer's pattern is
    `Window(size) | Global(tokens)`.

    Args:
        tokens: int n, at least 1, which makes the first n positions global. Or a tuple of
            positions.

    ```python
    import keras_attention as ka

    longformer = ka.masks.Window(1) | ka.masks.Global(1)
    assert longformer.draw(3).splitlines()[2:] == ["0   ■ ■ ■", "1   ■ ■ ·", "2   ■ · ■"]
    assert ka.masks.Global((0, 1)).draw(5) == ka.masks.Global(2).draw(5)
    ```
    """

    tokens: int | tuple

    def __post_init__(self):
        if isinstance(self.tokens, list | tuple):
            object.__setattr__(self, "tokens", _positions(self.tokens))
        else:
            checks.check_whole_numbers(self, "tokens")

    def allows(self, i, j):
        return ops.logical_or(self._includes(i), self._includes(j))

    def reach(self):
        tokens = range(self.tokens) if isinstance(self.tokens, int) else self.tokens
        return Reach(0, -1, tokens)

    def _includes(self, position):
        if isinstance(self.tokens, int):
            return position < self.tokens
        equals = [ops.equal(position, token) for token in self.tokens]
        return functools.reduce(ops.logical_or, equals)


def _positions(tokens):
    positions = tuple(
        checks.check_whole_number("Global", "tokens", token, least=0) for token in tokens
    )
    if not positions or len(set(positions)) < len(positions):
        raise ValueError(
            f"Global(tokens={tokens!r}): give one or more different positions, or a number n for "
            "the first n."
        )
    return positions
