"""The activation normalizer: any function, such as a Keras activation, of the scores."""

import collections.abc
import dataclasses

import keras

from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer

REFUSED = {
    "glu": "halves the row",
    "threshold": "needs arguments",
    "sparsemax": "is NaN where all is masked; normalizers.Sparsemax is not",
}
KNOWN = sorted(
    name
    for name in dir(keras.activations)
    if not name.startswith("_") and name not in {"get", "serialize", "deserialize", *REFUSED}
)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Activation(Normalizer, Part):
    """Applies any function to the scores s: `weights = fn(s)`. The weights of hidden keys are zero.

    Args:
        fn: name of a Keras activation, or a function that maps scores to weights of the same shape.
            Its result must be finite for masked scores, which are about -1e9. To save a model with
            your own function, register it with `keras.saving.register_keras_serializable`.

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    scores, mask = np.zeros((1, 1, 1, 3), "float32"), np.array([True, True, False])
    weights = ka.normalizers.Activation("softplus")(scores, mask)
    assert np.allclose(weights, [np.log(2), np.log(2), 0])
    ```
    """

    fn: str | collections.abc.Callable

    def __post_init__(self):
        if not (self.fn in KNOWN if isinstance(self.fn, str) else callable(self.fn)):
            why = f" Keras's {self.fn} {REFUSED[self.fn]}." if self.fn in REFUSED else ""
            raise ValueError(
                f"Activation(fn={self.fn!r}): fn must be a function or the name of a Keras "
                f"activation.{why} Known: {', '.join(KNOWN)}."
            )

    def normalize(self, scores, allowed):
        return keras.activations.get(self.fn)(scores)
