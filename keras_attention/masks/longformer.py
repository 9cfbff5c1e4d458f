"""Longformer's mask: a sliding window and a few global tokens."""

import dataclasses

import keras

from keras_attention.core import checks
from keras_attention.masks.base import NamedMask
from keras_attention.masks.global_tokens import Global
from keras_attention.masks.window import Dilated


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Longformer(NamedMask):
    """Longformer's mask: a sliding window and global tokens (Beltagy et al., 2020, section 3.1).

    The mask equals `Dilated(window // 2 + 1, dilation) | Global(tokens)`. In the paper, global
    tokens have separate projections. Here all tokens share the same projections.

    Args:
        window: int, even, at least 2. A query sees its own key and window / 2 keys on each side.
        tokens: int n, at least 1, which makes the first n positions global. Or a tuple of
            positions.
        dilation: int, at least 1, the distance between neighboring keys of the window.

    ```python
    import keras_attention as ka

    mask = ka.masks.Longformer(window=2, tokens=1)
    assert mask.draw(4).splitlines()[2:5] == ["0   ■ ■ ■ ■", "1   ■ ■ ■ ·", "2   ■ ■ ■ ■"]
    assert mask.draw(4) == (ka.masks.Window(2) | ka.masks.Global(1)).draw(4)
    ```
    """

    window: int
    tokens: int | tuple = 1
    dilation: int = 1

    def __post_init__(self):
        checks.check_whole_numbers(self, "window", least=2)
        checks.check_whole_numbers(self, "dilation")
        if self.window % 2:
            raise ValueError(
                f"Longformer(window={self.window}): window must be even. Choose {self.window - 1} "
                f"or {self.window + 1}."
            )
        object.__setattr__(self, "tokens", Global(self.tokens).tokens)

    def parts(self):
        return Dilated(self.window // 2 + 1, self.dilation) | Global(self.tokens)
