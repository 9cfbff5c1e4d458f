"""`Reach`: bounds on the pairs that a mask allows, so that kernels can skip hidden pairs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Reach:
    """Bounds on the pairs that a mask allows: a band along the diagonal, and global tokens.

    For every allowed pair of a query position i and a key position j, `-left <= j - i <= right`, or
    i or j is in `tokens`. Pairs within the bounds may still be hidden. `a | b` contains the union
    and `a & b` the intersection of two reaches. These bounds are not always as tight as possible.

    Args:
        left: int, how many positions back a query sees, or None for no limit. With `left=-1` a
            query sees only later keys.
        right: int, how many positions ahead a query sees, or None for no limit. May be negative.
        tokens: positions that have allowed pairs outside the band, stored as a sorted tuple.

    Reaches are normalized, so equivalent ones compare equal: an empty band is always (0, -1), and
    an unbounded band has no `tokens`.

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
        """Convert a reach that counts blocks of `size` tokens to a reach that counts tokens."""
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
