"""Sliding-window masks: plain, dilated, and over the patches of an image."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Window(Mask, Part):
    """A sliding window: key j is visible to query i when |i - j| < size.

    This is local attention (Beltagy et al., 2020, section 3.1). A query sees 2 · size - 1 keys.
    With `Causal() & Window(size)` it sees its own key and the size - 1 keys before. The paper's
    window of w keys is `Window(w // 2 + 1)`.

    Args:
        size: int, at least 1, the number of keys on each side, including the query's own key. With
            1, a query sees only its own key.

    ```python
    import keras_attention as ka

    mask = ka.masks.Window(2)
    assert mask.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ■", "2   · ■ ■"]
    ```
    """

    relative = True
    is_band = True

    size: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "size")

    def allows(self, i, j):
        return ops.abs(i - j) < self.size

    def reach(self):
        return Reach(self.size - 1, self.size - 1)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Dilated(Mask, Part):
    """A dilated sliding window, with gaps between the keys (Beltagy et al., 2020, section 3.1).

    Key j is visible to query i when dilation divides i - j and |i - j| < size * dilation. A query
    sees as many keys as with `Window(size)`, but these keys are `dilation` positions apart.

    Args:
        size: int, at least 1, the number of keys on each side, including the query's own key.
        dilation: int, at least 1, the distance between neighboring keys. 1 is `Window(size)`.

    ```python
    import keras_attention as ka

    mask = ka.masks.Dilated(size=2, dilation=2)
    assert mask.draw(5).splitlines()[2] == "0   ■ · ■ · ·"
    assert mask.draw(5).splitlines()[4] == "2   ■ · ■ · ■"
    ```
    """

    relative = True

    size: int
    dilation: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "size", "dilation")

    def allows(self, i, j):
        aligned = ops.equal((i - j) % self.dilation, 0)
        return ops.logical_and(aligned, ops.abs(i - j) < self.size * self.dilation)

    def reach(self):
        farthest = (self.size - 1) * self.dilation
        return Reach(farthest, farthest)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Window2D(Mask, Part):
    """A window over an image: keys less than `size` rows and `size` columns away are visible.

    This is local attention over an image (Parmar et al., 2018, section 3.3, and Ramachandran et
    al., 2019). Patches are numbered row by row: the patch at (row, column) is token
    `prefix + row * columns + column`. A query sees (2 · size - 1)² keys, and fewer at the border.
    Prefix tokens, such as a class token or registers, see all tokens and are seen by all tokens.
    Add `& ~Global(prefix)` to hide them. Tokens after the grid, such as padding, see only prefix
    tokens.

    Unless you pass positions, attention raises an error if the static number of tokens is not
    prefix + rows · columns. A causal model accepts fewer tokens: the beginning of an image.

    Args:
        size: int, at least 1, or a pair (rows, columns). With 1, a query sees only its own patch.
        grid: (rows, columns) of the image in patches, ints of at least 1.
        prefix: int, at least 0, the number of tokens before the grid.

    ```python
    import keras_attention as ka

    mask = ka.masks.Window2D(2, grid=(2, 3))
    assert mask.draw(6).splitlines()[2:4] == ["0   ■ ■ · ■ ■ ·", "1   ■ ■ ■ ■ ■ ■"]
    ```
    """

    size: int | tuple
    grid: tuple
    prefix: int = 0

    def __post_init__(self):
        if isinstance(self.size, list | tuple):
            size = checks.check_rows_and_columns("Window2D", "size", self.size)
            object.__setattr__(self, "size", size)
        else:
            checks.check_whole_numbers(self, "size")
        object.__setattr__(
            self, "grid", checks.check_rows_and_columns("Window2D", "grid", self.grid)
        )
        checks.check_whole_numbers(self, "prefix", least=0)

    def allows(self, i, j):
        rows, columns = self.grid
        height, width = self._sizes()
        i, j = i - self.prefix, j - self.prefix
        near = ops.logical_and(
            ops.abs(i // columns - j // columns) < height,
            ops.abs(i % columns - j % columns) < width,
        )
        inside = ops.logical_and(i < rows * columns, j < rows * columns)
        before = ops.logical_or(i < 0, j < 0)
        return ops.logical_or(ops.logical_and(near, inside), before)

    def check_length(self, length, exact=True):
        rows, columns = self.grid
        tokens = self.prefix + rows * columns
        checks.check_token_count(self, tokens, length, exact and not scope.current(scope.Decoding))

    def reach(self):
        rows, columns = self.grid
        height, width = self._sizes()
        farthest = (min(height, rows) - 1) * columns + min(width, columns) - 1
        return Reach(farthest, farthest, tokens=range(self.prefix))

    def _sizes(self):
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)
