"""Penalties for `generate`, which make tokens less probable, given the tokens so far."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part


class Penalty(Part):
    """Base class of penalties, which change the logits given the tokens so far.

    A subclass defines `__call__`.

    Call arguments:
        logits: float32 (B, vocabulary_size).
        history: a `TokenHistory`, the tokens so far.

    Returns:
        The new logits (B, vocabulary_size). Tokens and scores are computed from these logits.
    """

    def __call__(self, logits, history):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Frequency(Penalty):
    """Lowers the logits of tokens that already occurred, in the prompt or among the new tokens.

    Args:
        each: float, subtracted for every occurrence of a token, the frequency penalty of OpenAI's
            API (2020).
        once: float, subtracted once if a token has occurred, the presence penalty of the same API.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[1, 1, -1]])
    history = ka.generation.TokenHistory(tokens, count=2, begin=1, vocabulary_size=2)
    penalty = ka.generation.penalties.Frequency(each=0.5, once=1.0)
    assert np.array_equal(penalty(np.zeros((1, 2), "float32"), history), [[0.0, -2.0]])
    ```
    """

    each: float = 0.0
    once: float = 0.0

    def __post_init__(self):
        checks.check_number(self, "each")
        checks.check_number(self, "once")

    def __call__(self, logits, history):
        times = ops.cast(history.occurrences(), "float32")
        return logits - self.each * times - self.once * ops.minimum(times, 1.0)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Repetition(Penalty):
    """Makes tokens less probable that already occurred, in the prompt or among the new tokens.

    The penalty divides positive logits by `factor`, and multiplies negative logits by `factor`.
    CTRL (Keskar et al., 2019, section 4.1) divides all logits, which makes tokens with negative
    logits more probable.

    Args:
        factor: positive float. 1 changes nothing, and values below 1 favor repetition. The paper
            uses 1.2.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[0, 1, -1]])
    history = ka.generation.TokenHistory(tokens, count=2, begin=1, vocabulary_size=3)
    penalty = ka.generation.penalties.Repetition(2.0)
    logits = np.array([[3.0, -3.0, 3.0]], "float32")
    assert np.array_equal(penalty(logits, history), [[1.5, -6.0, 3.0]])
    ```
    """

    factor: float

    def __post_init__(self):
        checks.check_number(self, "factor", above=0)

    def __call__(self, logits, history):
        logits = ops.convert_to_tensor(logits)
        less = ops.where(logits > 0, logits / self.factor, logits * self.factor)
        return ops.where(history.occurrences() > 0, less, logits)


def get(identifier):
    """Return the `Penalty` that `identifier`, a penalty or its config, describes.

    Anything else raises a ValueError.
    """
    if not isinstance(identifier, Penalty | dict):
        raise ValueError(f"penalties={identifier!r}: expected a Penalty, or its config.")
    return part.get(identifier, names={}, family="penalty", base=Penalty)
