"""Scheduled sampling: schedules of teacher forcing, and the callback that applies them."""

import dataclasses
import math

import keras

from keras_attention.core import checks, keras_internals
from keras_attention.core.part import Part, get
from keras_attention.recurrent.feedback import TeacherForced


class TeacherForcing(Part):
    """A schedule of teacher forcing: `schedule(step)` is the probability ε of the given token.

    `step` counts from 0, in updates or in epochs: see `ScheduledSampling`.
    """

    def __call__(self, step):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ConstantForcing(TeacherForcing):
    """`ε_i = probability` (Bengio et al., 2015, section 4, *uniform scheduled sampling* at 0.5).

    ```python
    import keras_attention as ka

    assert ka.training.ConstantForcing(0.75)(1000) == 0.75
    ```
    """

    probability: float

    def __post_init__(self):
        checks.check_number(self, "probability", least=0, most=1)

    def __call__(self, step):
        return self.probability


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class LinearForcing(TeacherForcing):
    """`ε_i = max(least, start - slope · i)` (Bengio et al., 2015, section 2.4, *linear decay*).

    Args:
        slope: float above 0, the paper's c, by which the probability falls per step.
        start: float from 0 to 1, k. least: float from 0 to 1, ε.

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
        checks.check_number(self, "slope", above=0)
        checks.check_number(self, "start", least=0, most=1)
        checks.check_number(self, "least", least=0, most=1)

    def __call__(self, step):
        return max(self.least, self.start - self.slope * step)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ExponentialForcing(TeacherForcing):
    """`ε_i = base^i` (Bengio et al., 2015, section 2.4, *exponential decay*).

    Args:
        base: float from 0 to 1, the paper's k.

    ```python
    import keras_attention as ka

    schedule = ka.training.ExponentialForcing(0.5)
    assert [schedule(step) for step in range(3)] == [1.0, 0.5, 0.25]
    ```
    """

    base: float

    def __post_init__(self):
        checks.check_number(self, "base", least=0, most=1)

    def __call__(self, step):
        return self.base**step


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class InverseSigmoidForcing(TeacherForcing):
    """`ε_i = k / (k + exp(i / k))` (Bengio et al., 2015, section 2.4, *inverse sigmoid decay*).

    It is near 1 at first, one half at step `k · log k`, and near 0 at the end.

    Args:
        k: float of at least 1. Larger values fall more slowly.

    ```python
    import math
    import keras_attention as ka

    schedule = ka.training.InverseSigmoidForcing(100)
    assert schedule(0) > 0.99 and abs(schedule(100 * math.log(100)) - 0.5) < 1e-9
    ```
    """

    k: float

    def __post_init__(self):
        checks.check_number(self, "k", least=1)

    def __call__(self, step):
        # k / (k + exp(i / k)), written so that no exponential overflows late in training
        return 1 / (1 + math.exp(min(step / self.k - math.log(self.k), 700.0)))


NAMES = {
    "constant": ConstantForcing,
    "linear": LinearForcing,
    "exponential": ExponentialForcing,
    "inverse_sigmoid": InverseSigmoidForcing,
}


def get_teacher_forcing(identifier):
    """Return the schedule for a schedule, its config, or a constant."""
    if isinstance(identifier, int | float) and not isinstance(identifier, bool):
        return ConstantForcing(identifier)
    schedule = get(identifier, names=NAMES, family="teacher forcing", base=TeacherForcing)
    if schedule is None:
        raise ValueError("schedule=None: expected a schedule, such as LinearForcing(slope=1e-4).")
    return schedule


class ScheduledSampling(keras.callbacks.Callback):
    """Lowers how often the model is fed given tokens, by a schedule (Bengio et al., 2015).

    It is for models that can be fed their own predictions in training: recurrent ones built with
    `feedback=`, and any sequence-to-sequence model through `with_two_passes`. It sets the weight
    `teacher_forcing` of their layers, the probability of a given token, and logs it at the end of
    each epoch. Evaluation and prediction ignore the weight.

    Args:
        schedule: `ConstantForcing`, `LinearForcing`, `ExponentialForcing`, `InverseSigmoidForcing`,
            a config of one, or a number for a constant.
        per: `"step"` counts the optimizer's updates, so that a resumed training continues where it
            stopped. `"epoch"` counts epochs.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    ids = keras.Input((None,), dtype="int32", name="target_ids")
    logits = keras.layers.Dense(9)(keras.layers.Embedding(9, 4)(ids))
    model = ka.training.with_two_passes(keras.Model({"target_ids": ids}, logits))
    model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0))

    target = np.random.randint(1, 9, size=(4, 6))
    sampling = ka.training.ScheduledSampling(ka.training.LinearForcing(slope=0.25))
    history = model.fit(
        {"target_ids": target[:, :-1]}, target[:, 1:], batch_size=2, callbacks=[sampling], verbose=0
    )
    assert history.history["teacher_forcing"] == [0.75]  # in the second update
    ```
    """

    def __init__(self, schedule, per="step"):
        super().__init__()
        self.schedule, self.per = get_teacher_forcing(schedule), per
        checks.check_choice(self, "per", ("step", "epoch"))
        self._weights, self._now = [], None

    def on_train_begin(self, logs=None):
        layers = keras_internals.all_layers(self.model)
        forced = [layer.teacher_forcing for layer in layers if isinstance(layer, TeacherForced)]
        self._weights = [weight for weight in forced if weight is not None]
        if not self._weights:
            raise ValueError(
                f"{self.model.name} is always fed the given tokens: there is nothing to schedule. "
                "Make it with feedback='argmax' or 'sample', or fit "
                "keras_attention.training.with_two_passes(model)."
            )

    def on_epoch_begin(self, epoch, logs=None):
        if self.per == "epoch":
            self._set(epoch)

    def on_train_batch_begin(self, batch, logs=None):
        if self.per == "step":
            self._set(int(self.model.optimizer.iterations))

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["teacher_forcing"] = self._now

    def _set(self, step):
        self._now = float(self.schedule(step))
        for weight in self._weights:
            weight.assign(self._now)
