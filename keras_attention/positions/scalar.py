"""Scalar positions: the index, added to the tokens."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.part import Part
from keras_attention.positions.base import Position
from keras_attention.positions.indices import count, expand_positions


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Scalar(Position, Part):
    """Adds the position, one number, to every feature: a baseline for comparison.

    Lectures start with it (for example Kazemnejad, *Transformer Architecture: The Positional
    Encoding*, 2019). The raw index p outgrows the token. Scaled to 0..1, p / (T - 1), it stays
    small, but the size of a step depends on the length.

    Args:
        scaled: bool, whether positions are scaled so that the last one is 1.
        length: int, the number of positions from 0 to 1. By default the T of the tokens. Explicit
            positions (a slice, a cache) need it.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.zeros((1, 3, 1), "float32")
    assert np.array_equal(ka.positions.Scalar().embed(x)[0, :, 0], [0.0, 0.5, 1.0])
    assert np.array_equal(ka.positions.Scalar(scaled=False).embed(x)[0, :, 0], [0, 1, 2])
    ```
    """

    scaled: bool = True
    length: int | None = None

    roles = frozenset({"embed"})

    def __post_init__(self):
        checks.check_choice(self, "scaled", (True, False))
        checks.check_whole_numbers(self, "length", least=2, optional=True)

    def embed(self, x, positions=None):
        index = ops.cast(expand_positions(count(positions, x), 2), "float32")  # (1 or B, T, 1)
        if self.scaled:
            index = index / self._last(x, positions)
        return ops.cast(ops.cast(x, "float32") + index, x.dtype)

    def _last(self, x, positions):
        if self.length is not None:
            return float(self.length - 1)
        scope.refuse_decoding(
            f"{self!r} divides by the length of the whole text, which is not known before its end. "
            "Give it as Scalar(length=...)."
        )
        if positions is not None:
            raise ValueError(
                "Scalar(scaled=True) divides by the length of the whole sequence, which explicit "
                "positions do not tell: give it as Scalar(length=...)."
            )
        return ops.cast(ops.maximum(ops.shape(x)[1] - 1, 1), "float32")
