"""What every penalty is."""

from keras_attention import part
from keras_attention.part import Part


class Penalty(Part):
    """Changes the logits by what has been written: `penalty(logits, written)`.

    Args of a call:
        logits: float32 (B, V).
        written: `Written`.

    Returns:
        The logits that take their place, (B, V). Samplers and beams go by them, and scores are
        their log-probabilities.
    """

    def __call__(self, logits, written):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


def get(identifier):
    """The penalty that `identifier` means: one, or its config."""
    if not isinstance(identifier, Penalty | dict):
        raise ValueError(f"penalties={identifier!r}: expected a Penalty, or its config.")
    return part.get(identifier, names={}, family="penalty", base=Penalty)
