"""Bounds on what a mask allows, by which kernels skip pairs that are hidden."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Reach:
    """A bound on the pairs that a mask allows: a band along the diagonal, and global tokens.

    For every allowed pair of a query position i and a key position j, `-left <= j - i <= right`, or
    i or j is in `tokens`. Pairs inside the bound may still be masked: a kernel asks the mask about
    those it computes and skips all others. `a | b` bounds the union and `a & b` the intersection,
    the latter not always as tightly as possible.

    Args:
        left: int, how many positions back a query sees, or None for all. Negative numbers count
            ahead: with `left=-1` a query sees only later keys.
        right: int, how many positions ahead a query sees, or None for all; may be negative.
        tokens: positions that attend, or are attended to, outside the band; kept as a sorted tuple.

    Equal bounds compare equal: an empty band is always (0, -1), of width `left + right + 1 = 0`,
    and an unbounded band has no `tokens`, as it holds every pair.

    ```python
    import keras_attention as ka

    mask = ka.masks.Causal() & ka.masks.Window(128) | ka.masks.Global(2)
    assert mask.reach() == ka.masks.Reach(left=127, right=0, tokens=(0, 1))
    assert ka.masks.Global(2).reach() == ka.masks.Reach(left=0, right=-1, tokens=(0, 1))
    ```
    """

    left: int | None = None
    right: int | None = None
    tokens: tuple = ()

    def __post_init__(self):
        tokens = tuple(sorted(set(self.tokens)))
        if self.left is None and self.right is None:
            tokens = ()
        object.__setattr__(self, "tokens", tokens)
        if self._is_empty():
            object.__setattr__(self, "left", 0)
            object.__setattr__(self, "right", -1)

    def _is_empty(self):
        return None not in (self.left, self.right) and self.left + self.right < 0

    def __or__(self, other):
        tokens = self.tokens + other.tokens
        if self._is_empty():
            return Reach(other.left, other.right, tokens)
        if other._is_empty():
            return Reach(self.left, self.right, tokens)
        left, right = _farther(self.left, other.left), _farther(self.right, other.right)
        return Reach(left, right, tokens)

    def __and__(self, other):
        left, right = _nearer(self.left, other.left), _nearer(self.right, other.right)
        return Reach(left, right, self.tokens + other.tokens)

    def in_blocks(self, size):
        """This bound on blocks of `size` tokens, as a bound on tokens."""
        tokens = tuple(block * size + k for block in self.tokens for k in range(size))
        if self._is_empty():
            return Reach(0, -1, tokens)
        left, right = (
            side if side is None else side * size + size - 1 for side in (self.left, self.right)
        )
        return Reach(left, right, tokens)


NOTHING = Reach(0, -1)


def _farther(a, b):
    return None if a is None or b is None else max(a, b)


def _nearer(a, b):
    return a if b is None else b if a is None else min(a, b)
