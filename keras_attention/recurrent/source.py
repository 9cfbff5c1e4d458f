"""What a decoder attends to, as it is prepared once for all of its steps."""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class Source:
    """An encoded source, ready to be attended to.

    Attributes:
        values: (B, S, E), the encoder's output.
        mask: bool (B, S), True = a token.
        keys: (B, S, 1, any width), what the score's `prepare` made of the values, or None where it
            leaves them as they are.
    """

    values: object
    mask: object
    keys: object = None

    def prepared_keys(self):
        """The keys (B, S, 1, width), as the score takes them."""
        return ops.expand_dims(self.values, axis=2) if self.keys is None else self.keys


def mask_or_ones(mask, encoded):
    """`mask` as bool (B, S); all True for None."""
    if mask is None:
        return ops.ones(ops.shape(encoded)[:2], dtype="bool")
    return ops.cast(mask, "bool")
