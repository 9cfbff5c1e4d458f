"""Scheduled sampling, which trains a decoder partly on its own predictions."""

import dataclasses
import math

import keras

from keras_attention.core import checks, keras_internals
from keras_attention.core.part import Part, get
from keras_attention.recurrent.feedback import TeacherForced


class TeacherForcing(Part):
    """Base class of schedules for teacher forcing, which `ScheduledSampling` takes.

    `schedule(step)` returns ε, the probability that the decoder reads the true token and not its
    own prediction. `step` counts updates or epochs from 0.
    """

    def __call__(self, step):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ConstantForcing(TeacherForcing):
    """A schedule that always returns the same probability of teacher forcing.

    Args:
        probability: float from 0 to 1. With 0.5 it is the *uniform scheduled sampling* of Bengio et
            al. (2015, section 4).

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
    """A schedule that lowers the probability of teacher forcing linearly.

    `ε_i = max(least, start - slope · i)` at step i (Bengio et al., 2015, section 2.4).

    Args:
        slope: positive float, the decrease per step (c in the paper).
        start: float from 0 to 1, the probability at step 0 (k in the paper).
        least: float from 0 to 1, the smallest probability (ε in the paper).

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
    """A schedule that lowers the probability of teacher forcing exponentially.

    `ε_i = base^i` at step i (Bengio et al., 2015, section 2.4).

    Args:
        base: float from 0 to 1, the factor per step (k in the paper).

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
    """A schedule that lowers the probability of teacher forcing slowly at first, then faster.

    `ε_i = k / (k + exp(i / k))` at step i (Bengio et al., 2015, section 2.4, *inverse sigmoid
    decay*). It starts near 1, is 0.5 at step `k · log k`, and approaches 0.

    Args:
        k: float, at least 1. A larger value makes the probability decay more slowly.

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
        # k / (k + exp(i / k)), written so that exp does not overflow late in training
        return 1 / (1 + math.exp(min(step / self.k - math.log(self.k), 700.0)))


NAMES = {
    "constant": ConstantForcing,
    "linear": LinearForcing,
    "exponential": ExponentialForcing,
    "inverse_sigmoid": InverseSigmoidForcing,
}


def get_teacher_forcing(identifier):
    """Return the `TeacherForcing` that `identifier` describes.

    `identifier` is a schedule, its name or config, or a float for a constant probability. Raise a
    ValueError if `identifier` is None or an unknown name.
    """
    if isinstance(identifier, int | float) and not isinstance(identifier, bool):
        return ConstantForcing(identifier)
    schedule = get(identifier, names=NAMES, family="teacher forcing", base=TeacherForcing)
    if schedule is None:
        raise ValueError("schedule=None: expected a schedule, such as LinearForcing(slope=1e-4).")
    return schedule


class ScheduledSampling(keras.callbacks.Callback):
    """Makes a decoder read more and more of its own predictions in training (Bengio et al., 2015).

    Use this callback with `seq2seq_recurrent(..., feedback=...)`, or with any sequence-to-sequence
    model wrapped by `with_two_passes`. It sets the weight `teacher_forcing` of their layers, the
    probability that the decoder reads the true token, and logs it at the end of each epoch.
    Evaluation and prediction ignore this weight.

    Args:
        schedule: `ConstantForcing`, `LinearForcing`, `ExponentialForcing`, `InverseSigmoidForcing`,
            the config of one of them, or a float for a constant probability.
        per: `"step"` counts the optimizer's updates, so that a resumed run continues the schedule
            where it stopped. `"epoch"` counts epochs.

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
    assert history.history["teacher_forcing"] == [0.75]  # of the epoch's last update, the second
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
                f"{self.model.name} never reads its own predictions in training, so there is "
                "nothing to schedule. Build it with feedback='argmax' or 'sample', or fit "
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
