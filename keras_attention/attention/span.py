"""Pieces of an axis: which queries, or which keys, a kernel computes with at a time.

All have `take(x, axis)`, their part of an axis of `x`, where an axis of length 1 speaks for all
places and stays; and `positions(given)`, where their tokens are: `given` (T,) or (B, T), or, for
None, 0, 1, 2, ...
"""

import dataclasses

import numpy as np
from keras import ops


@dataclasses.dataclass(frozen=True)
class Span:
    """`size` places from `start`, ints."""

    start: int
    size: int

    @property
    def end(self):
        return self.start + self.size

    def take(self, x, axis):
        if x is None or x.shape[axis] in (1, self.size):
            return x
        if x.shape[axis] is None:  # it may yet turn out to be 1
            places = ops.minimum(ops.arange(self.start, self.end), ops.shape(x)[axis] - 1)
            return ops.take(x, places, axis=axis)
        return x[(slice(None),) * axis + (slice(self.start, self.end),)]

    def positions(self, given=None):
        if given is None:
            return ops.arange(self.start, self.end, dtype="int32")
        return self.take(ops.convert_to_tensor(given), len(given.shape) - 1)


@dataclasses.dataclass(frozen=True)
class Whole:
    """All places of an axis; `size` may be unknown, a tensor."""

    size: object

    def take(self, x, axis):
        return x

    def positions(self, given=None):
        return ops.arange(self.size, dtype="int32") if given is None else given


@dataclasses.dataclass(frozen=True)
class Places:
    """Single places, a tuple of ints."""

    tokens: tuple

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.take(x, self.tokens, axis=axis)

    def positions(self, given=None):
        if given is None:
            return ops.convert_to_tensor(self.tokens, "int32")
        return ops.take(given, self.tokens, axis=len(given.shape) - 1)


@dataclasses.dataclass(frozen=True)
class Joined:
    """Single places, then a span; `distinct` tells those places that the span has not."""

    places: Places
    span: Span

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.concatenate([self.places.take(x, axis), self.span.take(x, axis)], axis=axis)

    def positions(self, given=None):
        both = [piece.positions(given) for piece in (self.places, self.span)]
        return ops.concatenate(both, axis=len(both[0].shape) - 1)

    def distinct(self):
        """Bool (1, 1, 1, places + span), True = here for the first and only time, or None: all."""
        inside = np.array(
            [self.span.start <= token < self.span.end for token in self.places.tokens]
        )
        if not inside.any():
            return None
        once = np.concatenate([~inside, np.ones(self.span.size, "bool")])
        return ops.convert_to_tensor(once.reshape(1, 1, 1, -1))
