"""Learning-rate schedules: warm-up with cosine decay, and the Transformer's (Noam)."""

import keras
from keras import ops

from keras_attention.core.checks import check_whole_number


def warmup_cosine(peak, warmup_steps, total_steps, final=0.0):
    """Make Keras's `CosineDecay` with a linear warm-up to `peak`, then a half cosine.

    (Loshchilov and Hutter, 2017; Goyal et al., 2017, for the warm-up.) Step 0 has rate 0, step
    `warmup_steps` has `peak`, step `total_steps` and all later ones have `final * peak`.

    Args:
        peak: float, the highest learning rate.
        warmup_steps: int, may be 0.
        total_steps: int, with the warm-up: usually steps per epoch times epochs.
        final: float, the last rate as a share of `peak`.

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
            f"warmup_cosine(warmup_steps={warmup_steps}, total_steps={total_steps}): nothing is "
            "left to decay. total_steps includes the warm-up and must be larger."
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
    """The Transformer's schedule (Vaswani et al., 2017, section 5.3, equation 3).

    scale * hidden_dim^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), steps counted from 1:
    the first update, at which Keras's counter says 0, is step 1.

    Args:
        hidden_dim: int, the paper's d_model.
        warmup_steps: int.
        scale: float.

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
        return {name: getattr(self, name) for name in ("hidden_dim", "warmup_steps", "scale")}
