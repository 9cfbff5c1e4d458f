"""The repetition penalty of CTRL."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.generation.penalties.base import Penalty


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Repetition(Penalty):
    """Makes tokens less probable that stand in the prompt or were generated.

    (Keskar et al., 2019, *CTRL*, section 4.1.) A logit above 0 is divided by `factor`, one below is
    multiplied by it: the paper divides all, which would favour repeating where logits are negative.

    Args:
        factor: float above 0. 1 changes nothing; the paper finds 1.2 good; below 1 favours repeats.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    written = ka.generation.Written([[0, 1, -1]], count=2, begin=1, vocabulary_size=3)
    penalty = ka.generation.penalties.Repetition(2.0)
    logits = np.array([[3.0, -3.0, 3.0]], "float32")
    assert penalty(logits, written).numpy().tolist() == [[1.5, -6.0, 3.0]]
    ```
    """

    factor: float

    def __post_init__(self):
        checks.number(self, "factor", above=0)

    def __call__(self, logits, written):
        logits = ops.convert_to_tensor(logits)
        less = ops.where(logits > 0, logits / self.factor, logits * self.factor)
        return ops.where(written.occurrences() > 0, less, logits)
