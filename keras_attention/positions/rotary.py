"""Queries and keys turned by their positions."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention import checks
from keras_attention.part import Part
from keras_attention.positions.base import Position
from keras_attention.positions.counting import angles, check_wavelength, count, spread


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Rotary(Position, Part):
    """Turns pairs of features by an angle that grows with the position (Su et al., 2021, eq. 34).

    Pair k of R/2 turns by p · max_wavelength^(-2k/R), so that the product of a query at i and a
    key at j depends on i - j alone. Heads turn alike; R = H unless `rotary_dim` says otherwise.

    Args:
        layout: which features are a pair. `"half"`: k and k + R/2, as GPT-NeoX and Llama's
            published weights, and the faster one (one concatenation); `"interleaved"`: 2k and
            2k + 1, as the paper and GPT-J. The same up to a permutation of features, which the
            query and key projections can learn; weights are not interchangeable without it.
        max_wavelength: number above 0. The slowest wave is almost 2π times as long.
        rotary_dim: even int, how many of the H features turn, the first ones; None is all.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Rotary()
    q, k = np.random.rand(2, 1, 1, 1, 8).astype("float32")
    score = lambda i, j: np.sum(position.rotate(q, [i]) * position.rotate(k, [j]))
    assert np.isclose(score(5, 2), score(105, 102), atol=1e-4)
    ```
    """

    layout: str = "half"
    max_wavelength: float = 10000
    rotary_dim: int | None = None

    roles = frozenset({"rotate"})

    def __post_init__(self):
        checks.one_of(self, "layout", ("half", "interleaved"))
        check_wavelength(self)
        if self.rotary_dim is not None:
            checks.whole(self, "rotary_dim", least=2)
            if self.rotary_dim % 2:
                raise ValueError(
                    f"Rotary(rotary_dim={self.rotary_dim}) turns features in pairs: rotary_dim "
                    "must be even."
                )

    def rotate(self, x, positions=None):
        size = self._size(x.shape[3])
        turning, rest = ops.cast(x, "float32"), []
        if size < x.shape[3]:
            turning, *rest = ops.split(turning, [size], axis=3)
        cosine, sine = self.waves(count(positions, x), size)
        turned = turning * cosine + self._partners(turning) * sine
        return ops.cast(ops.concatenate([turned, *rest], axis=3) if rest else turned, x.dtype)

    def waves(self, positions, size):
        """Cosines and signed sines for `positions` (T,) or (B, T): float32 (1 or B, T, 1, size)."""
        rates = float(self.max_wavelength) ** (-2.0 * np.arange(size // 2) / size)
        # (a, b) turns to (a cos - b sin, b cos + a sin): the sign goes with the first of a pair.
        signs = np.repeat([-1.0, 1.0], size // 2)
        if self.layout == "half":
            rates = np.tile(rates, 2)
        else:
            rates, signs = np.repeat(rates, 2), np.tile([-1.0, 1.0], size // 2)
        angle = angles(spread(positions, 2, 3), rates[None, None, None])
        return ops.cos(angle), ops.sin(angle) * ops.convert_to_tensor(signs, "float32")

    def _partners(self, x):
        """Each feature's place taken by the other of its pair."""
        if self.layout == "half":
            first, second = ops.split(x, 2, axis=3)
            return ops.concatenate([second, first], axis=3)
        heads, size = x.shape[2:]
        pairs = ops.reshape(x, (-1, heads * size // 2, 2))  # a fifth axis would bar GPU delegates
        return ops.reshape(ops.flip(pairs, axis=2), (-1, ops.shape(x)[1], heads, size))

    def _size(self, head_size):
        size = head_size if self.rotary_dim is None else self.rotary_dim
        if size > head_size:
            raise ValueError(
                f"Rotary(rotary_dim={self.rotary_dim}) cannot turn more features than the "
                f"{head_size} that a head has."
            )
        if size % 2:
            raise ValueError(
                f"Rotary turns features in pairs, but a head has an odd number of them, {size}. "
                f"Choose an even head size, or turn all but one with "
                f"Rotary(rotary_dim={size - 1})."
            )
        return size
