"""How often a decoder in training is fed the given token, and not its own prediction."""

import dataclasses
import math

import keras

from keras_attention import checks
from keras_attention.part import Part, get


class TeacherForcing(Part):
    """A schedule: `schedule(step)` is the probability of the given token, Bengio's ε.

    `step` counts from 0, in updates or in epochs; see `ScheduledSampling`.
    """

    def __call__(self, step):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ConstantForcing(TeacherForcing):
    """`ε_i = probability` (Bengio et al., 2015, section 4, *uniform scheduled sampling* at 0.5).

    Example:

    ```python
    import keras_attention as ka

    assert ka.training.ConstantForcing(0.75)(1000) == 0.75
    ```
    """

    probability: float

    def __post_init__(self):
        _check_share(self, "probability")

    def __call__(self, step):
        return self.probability


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class LinearForcing(TeacherForcing):
    """`ε_i = max(least, start - slope · i)` (Bengio et al., 2015, section 2.4, *linear decay*).

    Args:
        slope: float above 0, the paper's c: how much the probability falls in a step.
        start: float from 0 to 1, k. least: float from 0 to 1, ε.

    Example:

    ```python
    import keras_attention as ka

    schedule = ka.training.LinearForcing(slope=0.01, least=0.2)
    assert schedule(0) == 1.0 and schedule(50) == 0.5 and schedule(1000) == 0.2
    ```
    """

    slope: float
    start: float = 1.0
    least: float = 0.0

    def __post_init__(self):
        checks.number(self, "slope", above=0)
        _check_share(self, "start", "least")

    def __call__(self, step):
        return max(self.least, self.start - self.slope * step)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ExponentialForcing(TeacherForcing):
    """`ε_i = base^i` (Bengio et al., 2015, section 2.4, *exponential decay*).

    Args:
        base: float from 0 to 1, the paper's k.

    Example:

    ```python
    import keras_attention as ka

    schedule = ka.training.ExponentialForcing(0.5)
    assert [schedule(step) for step in range(3)] == [1.0, 0.5, 0.25]
    ```
    """

    base: float

    def __post_init__(self):
        _check_share(self, "base")

    def __call__(self, step):
        return self.base**step


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class InverseSigmoidForcing(TeacherForcing):
    """`ε_i = k / (k + exp(i / k))` (Bengio et al., 2015, section 2.4, *inverse sigmoid decay*).

    It stays near 1 at first, is one half at step `k · log k`, and near 0 in the end.

    Args:
        k: float of at least 1, how slowly it falls.

    Example:

    ```python
    import math
    import keras_attention as ka

    schedule = ka.training.InverseSigmoidForcing(100)
    assert schedule(0) > 0.99 and abs(schedule(100 * math.log(100)) - 0.5) < 1e-9
    ```
    """

    k: float

    def __post_init__(self):
        checks.number(self, "k")
        if self.k < 1:
            raise ValueError(f"InverseSigmoidForcing(k={self.k}): k must be at least 1.")

    def __call__(self, step):
        # k / (k + exp(i / k)), whose exponential would overflow late in a long training
        return 1 / (1 + math.exp(min(step / self.k - math.log(self.k), 700.0)))


NAMES = {
    "constant": ConstantForcing,
    "linear": LinearForcing,
    "exponential": ExponentialForcing,
    "inverse_sigmoid": InverseSigmoidForcing,
}


def get_teacher_forcing(identifier):
    """The schedule that `identifier` means: one, its config, or a number that stays."""
    if isinstance(identifier, int | float) and not isinstance(identifier, bool):
        return ConstantForcing(identifier)
    schedule = get(identifier, names=NAMES, family="teacher forcing", base=TeacherForcing)
    if schedule is None:
        raise ValueError("schedule=None: expected a schedule, such as LinearForcing(slope=1e-4).")
    return schedule


def _check_share(schedule, *names):
    for name in names:
        checks.number(schedule, name)
        if not 0 <= getattr(schedule, name) <= 1:
            raise ValueError(
                f"{type(schedule).__name__}({name}={getattr(schedule, name)!r}): {name} must be "
                "a number from 0 to 1."
            )
