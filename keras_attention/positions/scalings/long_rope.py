"""LongRoPE: a separate factor, found by search, for each pair of features."""

import dataclasses
import math
import numbers

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.scalings.base import (
    Scaling,
    compute_length,
    get_attention_factor,
    unscaled,
)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class LongRoPE(Scaling, Part):
    """A scaling of `Rotary` that divides the rotation rate of each pair by its own factor.

    Ding et al. (2024) propose it, and Phi-3 uses it. `long_factors` are used for inputs longer than
    `original_length`, and `short_factors` for all others. At any length, queries and keys are
    multiplied by √(1 + ln(factor) / ln(original_length)).

    The length of an input is one more than the largest position of its row. It is computed
    separately for queries and keys, so both must end at the same position, as in self-attention.
    In cross-attention, and to decode with a cache, set `length` instead.

    Args:
        short_factors: R / 2 positive numbers, one for each pair, if R features rotate.
        long_factors: R / 2 positive numbers, one for each pair.
        original_length: int, the length in training, at least 2.
        factor: positive number, the ratio of the longest input to the length in training.
        attention_factor: float, the factor of queries and keys. None means the square root above.
        length: int, the length to assume for all inputs. None computes it from the positions.

    ```python
    import numpy as np
    import keras_attention as ka

    scaling = ka.positions.scalings.LongRoPE((1, 1), (1, 3), original_length=4, factor=2)
    x = np.random.rand(1, 9, 2, 4).astype("float32")
    rotated = ka.positions.Rotary(scaling=scaling).rotate(x) / scaling.amplitude
    plain = ka.positions.Rotary().rotate(x)
    assert np.allclose(rotated[..., ::2], plain[..., ::2], atol=1e-6)
    assert not np.allclose(rotated[..., 1::2], plain[..., 1::2], atol=1e-6)
    ```
    """

    short_factors: tuple
    long_factors: tuple
    original_length: int
    factor: float = 1.0
    attention_factor: float | None = None
    length: int | None = None

    def __post_init__(self):
        for name in ("short_factors", "long_factors"):
            factors = getattr(self, name)
            numbers_above_0 = isinstance(factors, tuple | list) and all(
                isinstance(x, numbers.Real) and not isinstance(x, bool) and x > 0 for x in factors
            )
            if not numbers_above_0:
                raise ValueError(
                    f"LongRoPE({name}={factors!r}): {name} must be numbers above 0, one for each "
                    "pair of features."
                )
            object.__setattr__(self, name, tuple(map(float, factors)))
        checks.check_whole_numbers(self, "original_length", least=2)
        checks.check_number(self, "factor", above=0)
        checks.check_number(self, "attention_factor", above=0, optional=True)
        checks.check_whole_numbers(self, "length", optional=True)

    @property
    def amplitude(self):
        grown = math.log(max(self.factor, 1)) / math.log(self.original_length)
        return get_attention_factor(self, math.sqrt(1 + grown))

    def rates(self, size, max_wavelength, positions):
        for name in ("short_factors", "long_factors"):
            if len(getattr(self, name)) != size // 2:
                raise ValueError(
                    f"LongRoPE has {len(getattr(self, name))} {name}, but {size} features are "
                    f"{size // 2} pairs: give one factor for each pair."
                )
        plain = unscaled(size, max_wavelength)
        short, long = (
            ops.convert_to_tensor((plain / factors)[None, None, None], "float32")
            for factors in (self.short_factors, self.long_factors)
        )
        is_long = compute_length(positions, self.length) > self.original_length
        return ops.where(is_long, long, short)
