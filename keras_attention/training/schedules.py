"""Learning-rate schedules: warm-up with cosine decay, and the original Transformer's (Noam)."""

import keras
from keras import ops

from keras_attention.core.checks import check_whole_number


def warmup_cosine(peak, warmup_steps, total_steps, final=0.0):
    """Return a learning-rate schedule with a linear warm-up, followed by half a cosine.

    It is a Keras `CosineDecay` (Loshchilov and Hutter, 2017, and Goyal et al., 2017, for the
    warm-up). The learning rate is 0 at step 0, `peak` at step `warmup_steps`, and `final * peak` at
    step `total_steps` and later.

    Args:
        peak: float, the highest learning rate.
        warmup_steps: int. 0 starts at `peak`.
        total_steps: int, the number of steps including the warm-up, usually steps per epoch times
            epochs.
        final: float, the last learning rate as a fraction of `peak`.

    Raises:
        ValueError: `total_steps` is not larger than `warmup_steps`.

    ```python
    import keras
    import keras_attention as ka

    schedule = ka.training.warmup_cosine(1e-3, warmup_steps=100, total_steps=1000)
    assert abs(float(schedule(50)) - 5e-4) < 1e-9 and abs(float(schedule(100)) - 1e-3) < 1e-9
    optimizer = keras.optimizers.AdamW(schedule)
    ```
    """
    check_whole_number("warmup_cosine", "warmup_steps", warmup_steps, least=0)
    check_whole_number("warmup_cosine", "total_steps", total_steps)
    if total_steps <= warmup_steps:
        raise ValueError(
            f"warmup_cosine(warmup_steps={warmup_steps}, total_steps={total_steps}): no steps are "
            "left after the warm-up. Use a larger total_steps, which includes the warm-up."
        )
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup_steps else peak,
        decay_steps=total_steps - warmup_steps,
        alpha=final,
        warmup_target=peak if warmup_steps else None,
        warmup_steps=warmup_steps,
    )


@keras.saving.register_keras_serializable(package="keras_attention")
class Noam(keras.optimizers.schedules.LearningRateSchedule):
    """The learning-rate schedule of the first Transformer (Vaswani et al., 2017, section 5.3).

    The rate is scale * hidden_dim^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), with steps
    counted from 1. It increases linearly for `warmup_steps`, then decreases.

    Args:
        hidden_dim: int, the width of the model (d_model in the paper).
        warmup_steps: int, steps until the rate stops increasing.
        scale: float, a constant factor of the rate.

    ```python
    import keras_attention as ka

    schedule = ka.training.Noam(hidden_dim=512, warmup_steps=4000)
    assert abs(float(schedule(3999)) - (512 * 4000) ** -0.5) < 1e-9  # the peak
    ```
    """

    def __init__(self, hidden_dim, warmup_steps=4000, scale=1.0):
        self.hidden_dim = check_whole_number("Noam", "hidden_dim", hidden_dim)
        self.warmup_steps = check_whole_number("Noam", "warmup_steps", warmup_steps)
        self.scale = scale

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0
        slope = ops.minimum(ops.rsqrt(step), step * self.warmup_steps**-1.5)
        return self.scale * self.hidden_dim**-0.5 * slope

    def get_config(self):
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }
