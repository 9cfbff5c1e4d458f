"""The callback that weans a decoder from the given tokens."""

import keras

from keras_attention.training.teacher_forcing import get_teacher_forcing


class ScheduledSampling(keras.callbacks.Callback):
    """Lowers how often the model is fed given tokens, by a schedule (Bengio et al., 2015).

    For models that can be fed their own predictions in training: recurrent ones made with
    `feedback=`, and any sequence-to-sequence model through `with_two_passes`. Their layers have a
    weight `teacher_forcing`, the probability of a given token, which this sets; evaluation and
    prediction do not look at it. It is logged as `teacher_forcing` at the end of each epoch.

    Args:
        schedule: `ConstantForcing`, `LinearForcing`, `ExponentialForcing`, `InverseSigmoidForcing`,
            a config of one, or a number for a constant.
        per: `"step"` counts updates of the weights (from the optimizer, so that a training that
            was interrupted goes on where it was), `"epoch"` counts epochs.

    Example:

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
        {"target_ids": target[:, :-1]},
        target[:, 1:],
        batch_size=2,
        callbacks=[sampling],
        verbose=0,
    )
    assert history.history["teacher_forcing"] == [0.75]  # in the second update
    ```
    """

    def __init__(self, schedule, per="step"):
        super().__init__()
        self.schedule, self.per = get_teacher_forcing(schedule), per
        if per not in ("step", "epoch"):
            raise ValueError(f"ScheduledSampling(per={per!r}): per must be 'step' or 'epoch'.")
        self._weights, self._now = [], None

    def on_train_begin(self, logs=None):
        layers = self.model._flatten_layers()
        self._weights = [
            w for w in (getattr(x, "teacher_forcing", None) for x in layers) if w is not None
        ]
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
