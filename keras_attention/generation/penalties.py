"""Penalties: parts that make tokens less probable than the model says, by the tokens so far."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part


class Penalty(Part):
    """Changes the logits by the tokens so far: `penalty(logits, history)`.

    Args of a call:
        logits: float32 (B, V).
        history: `TokenHistory`.

    Returns:
        The new logits (B, V). Samplers and beams go by them, and scores are their
        log-probabilities.
    """

    def __call__(self, logits, history):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Frequency(Penalty):
    """Takes from the logit of a token `each` for every time it occurs, and `once` if it does.

    The frequency and presence penalties of OpenAI's interface (2020).

    Args:
        each: float, the frequency penalty.
        once: float, the presence penalty.

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
    """Makes tokens less probable that are in the prompt or were generated.

    (Keskar et al., 2019, *CTRL*, section 4.1.) A logit above 0 is divided by `factor`, one below is
    multiplied by it: the paper divides all, which would favour repeating where logits are negative.

    Args:
        factor: float above 0. 1 changes nothing; the paper finds 1.2 good; below 1 favours repeats.

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
    """Return the penalty that `identifier` means: one, or its config."""
    if not isinstance(identifier, Penalty | dict):
        raise ValueError(f"penalties={identifier!r}: expected a Penalty, or its config.")
    return part.get(identifier, names={}, family="penalty", base=Penalty)
