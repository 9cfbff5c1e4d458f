"""Scalar positions: the index of a token, added to its features."""

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
    """Adds the position, a single number, to every feature: a baseline for comparison.

    Pass it as `position=` of `ka.blocks.TokenEmbedding`, `PatchEmbedding` or a model.

    A token x at position p becomes `x + p / (T - 1)`, or `x + p` with `scaled=False`. Tutorials
    often start with this encoding (for example Kazemnejad, *Transformer Architecture: The
    Positional Encoding*, 2019). Unscaled, p becomes larger than the token's features. Scaled, the
    step between neighbors depends on the length. In a stack with pre-norm, the encoding has no
    effect: layer normalization subtracts the mean of the features, and the position with it.

    Args:
        scaled: bool, whether positions are divided by T - 1, so that the last one is 1.
        length: int, the length T to scale by. None uses the number of tokens. It is required if
            positions are passed, or if a model decodes with a cache.

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
            "Set the length: Scalar(length=...)."
        )
        if positions is not None:
            raise ValueError(
                "Scalar(scaled=True) divides by the length of the whole sequence, which explicit "
                "positions do not contain. Set the length: Scalar(length=...)."
            )
        return ops.cast(ops.maximum(ops.shape(x)[1] - 1, 1), "float32")
