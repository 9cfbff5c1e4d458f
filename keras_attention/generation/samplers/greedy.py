"""`Greedy`: a sampler that always chooses the most probable token."""

import dataclasses

import keras
from keras import ops

from keras_attention.generation.samplers.base import TokenSampler, first_of


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Greedy(TokenSampler):
    """Always chooses the most probable token. If several are equally probable, the lowest id.

    ```python
    import numpy as np
    import keras_attention as ka

    logits = np.array([[0.0, 3.0, 1.0]], "float32")
    assert ka.generation.Greedy().choose(logits, uniform=np.zeros(1)) == 1
    ```
    """

    def probabilities(self, logits):
        return ops.one_hot(self.choose(logits, None), logits.shape[-1], dtype="float32")

    def choose(self, logits, uniform):
        return first_of(logits >= ops.max(logits, axis=-1, keepdims=True))
