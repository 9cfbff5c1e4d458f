"""Penalties by how often a token was written."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.generation.penalties.base import Penalty


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Frequency(Penalty):
    """Takes from the logit of a token `each` for every time it was written, and `once` if ever.

    The frequency and presence penalties of OpenAI's interface (2020).

    Args:
        each: float, the frequency penalty.
        once: float, the presence penalty.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    written = ka.generation.Written([[1, 1, -1]], count=2, begin=1, vocabulary_size=2)
    penalty = ka.generation.penalties.Frequency(each=0.5, once=1.0)
    assert penalty(np.zeros((1, 2), "float32"), written).numpy().tolist() == [[0.0, -2.0]]
    ```
    """

    each: float = 0.0
    once: float = 0.0

    def __post_init__(self):
        checks.number(self, "each")
        checks.number(self, "once")

    def __call__(self, logits, written):
        times = ops.cast(written.occurrences(), "float32")
        return logits - self.each * times - self.once * ops.minimum(times, 1.0)
