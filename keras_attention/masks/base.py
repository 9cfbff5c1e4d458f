"""The base class of masks, their combinations with `&`, `|` and `~`, and the full mask."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import Part
from keras_attention.masks import drawing
from keras_attention.masks.reach import NOTHING, Reach


class Mask:
    """Says which key positions each query position may attend to.

    A mask is data: it is printed, compared, saved, combined with `&`, `|` and `~`, and drawn, all
    without a tensor. A new mask is a frozen dataclass under `Mask` and `Part` with `allows`, and
    with `reach` if it is bounded, so that a kernel can skip work.

    Positions default to 0..T-1 for queries and 0..S-1 for keys, as in Keras: with T != S the
    pattern is aligned at the top left, so `Causal` shows query 0 only key 0. To align it at the
    bottom right (new queries at the end of a longer memory), pass query positions that start at
    S - T.

    ```python
    import dataclasses
    import keras
    import keras_attention as ka


    @keras.saving.register_keras_serializable(package="my_project")  # or it saves, and cannot load
    @dataclasses.dataclass(frozen=True)
    class Future(ka.masks.Mask, ka.Part):
        "Key j is visible to query i when j > i."

        def allows(self, i, j):
            return j > i


    assert (~Future()).draw(2) == ka.masks.Causal().draw(2)
    assert ka.masks.get(keras.saving.serialize_keras_object(~Future())) == ~Future()
    ```
    """

    def __init_subclass__(cls, **kwargs):
        """Keep a mask that redefines `allows` from inheriting the bounds of its parent."""
        super().__init_subclass__(**kwargs)
        parents = cls.__mro__[1 : cls.__mro__.index(Mask)]
        if "allows" in vars(cls) and any("allows" in vars(parent) for parent in parents):
            for name in {"relative", "is_band", "reach", "outside"} - set(vars(cls)):
                setattr(cls, name, getattr(Mask, name))

    relative = False
    """Whether `allows` depends on i - j alone, as in `Causal`: kernels then need one small table.

    Set it to True in your own mask where that holds.
    """

    is_band = False
    """Whether `allows` is true of every pair within `band()`, and of no other, as in `Causal`.

    The attention of a GPU then takes the two bounds in place of a tensor. Set it to True in your
    own mask where that holds.
    """

    def allows(self, i, j):
        """Return whether query position `i` may attend to key position `j`, elementwise.

        Args:
            i: int tensor, (T, 1), or (1 or B, 1, T, 1).
            j: int tensor that broadcasts with it, (1, S), or (1 or B, 1, 1, S).

        Returns:
            bool tensor, True = may attend, that broadcasts to both.
        """
        raise NotImplementedError(f"{type(self).__name__}.allows")

    def check_length(self, length, exact=True):
        """Raises ValueError if the mask is not made for `length` tokens (int, or None if unknown).

        Most masks are for any length. Arguments as in `Position.check_length`.
        """

    def reach(self):
        """Return a bound on the allowed positions, as a `Reach`, by default none.

        A kernel that cuts a band out of tensors may use it where positions count up by one.

        ```python
        import keras_attention as ka

        mask = ka.masks.Window(3) | ka.masks.Global((0, 9))
        assert mask.reach() == ka.masks.Reach(left=2, right=2, tokens=(0, 9))
        ```
        """
        return Reach()

    def outside(self):
        """Return the reach of `~self`: a bound on the pairs that this mask hides."""
        return Reach()

    def band(self):
        """Return `(left, right)`: the diagonals between which allowed pairs lie. None is unbounded.

        For every allowed pair (i, j), `-left <= j - i <= right`, or i or j is in
        `global_tokens()`. The empty band is `(0, -1)`.

        ```python
        import keras_attention as ka

        assert (ka.masks.Causal() & ka.masks.Window(128)).band() == (127, 0)
        assert ka.masks.Causal().band() == (None, 0)
        assert ka.masks.Global(2).band() == (0, -1)
        ```
        """
        reach = self.reach()
        return reach.left, reach.right

    def global_tokens(self):
        """Return positions that attend, or are attended to, outside `band()`: a sorted tuple.

        Example: `(ka.masks.Window(128) | ka.masks.Global(2)).global_tokens() == (0, 1)`
        """
        return self.reach().tokens

    def density(self, query_length, key_length=None):
        """Return the share of allowed pairs, 0.0 to 1.0, for T queries and S (or T) keys.

        Example: `ka.masks.Causal().density(4) == 10 / 16`
        """
        query_length, key_length = _check_lengths("density", query_length, key_length)
        rows = 1 + 2**22 // key_length  # a few million pairs at a time
        allowed = 0
        for first in range(0, query_length, rows):
            queries = range(first, min(first + rows, query_length))
            allowed += np.count_nonzero(_compute_cells(self, queries, key_length))
        return allowed / (query_length * key_length)

    def to_numpy(self, query_length, key_length=None):
        """Return the mask as a NumPy bool array (T, S), for T queries and S (or T) keys.

        Example: `ka.masks.Causal().to_numpy(3)` is `np.tri(3, dtype=bool)`
        """
        query_length, key_length = _check_lengths("to_numpy", query_length, key_length)
        return _compute_cells(self, range(query_length), key_length)

    def draw(self, query_length=8, key_length=None, path=None):
        """Return the mask as a text grid, a row for each query (■ may attend, · may not).

        Args:
            query_length, key_length: int, T and S; S defaults to T.
            path: file to which the grid is also written as a picture; needs matplotlib.

        Returns:
            The grid as text.

        ```python
        import keras_attention as ka

        assert ka.masks.Window(2).draw(3, 4).splitlines() == [
            "  j 0 1 2 3",
            "i",
            "0   ■ ■ · ·",
            "1   ■ ■ ■ ·",
            "2   · ■ ■ ■",
        ]
        ```
        """
        query_length, key_length = _check_lengths("draw", query_length, key_length)
        cells = _compute_cells(self, range(query_length), key_length)
        if path is not None:
            drawing.save_picture(cells, path, title=str(self))
        return drawing.format_text(cells)

    def __bool__(self):
        raise TypeError(
            f"{self} is neither true nor false. Combine masks with &, | and ~; "
            "`and`, `or` and `not` would drop one of them."
        )

    def __and__(self, other):
        return Both(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other):
        return Either(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self):
        return Not(self)


class Combination(Mask, Part):
    """A mask whose fields are masks."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, Mask):
                raise ValueError(
                    f"{type(self).__name__}({field.name}={value!r}): {field.name} must be a mask, "
                    "such as Causal()."
                )

    def check_length(self, length, exact=True):
        for field in dataclasses.fields(self):
            getattr(self, field.name).check_length(length, exact)

    @property
    def relative(self):
        return all(getattr(self, field.name).relative for field in dataclasses.fields(self))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Both(Combination):
    """`left & right`: visible where both allow it.

    ```python
    import keras
    import keras_attention as ka

    mask = ka.masks.Causal() & ka.masks.Window(128)  # the last 128 tokens, this one included
    assert mask == ka.masks.Both(ka.masks.Causal(), ka.masks.Window(128))
    assert ka.masks.get(keras.saving.serialize_keras_object(mask)) == mask
    ```
    """

    left: Mask
    right: Mask

    def __str__(self):
        return f"({self.left} & {self.right})"

    def allows(self, i, j):
        return ops.logical_and(self.left.allows(i, j), self.right.allows(i, j))

    @property
    def is_band(self):
        return self.left.is_band and self.right.is_band

    def reach(self):
        return self.left.reach() & self.right.reach()

    def outside(self):
        return self.left.outside() | self.right.outside()


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Either(Combination):
    """`left | right`: visible where at least one allows it.

    ```python
    import keras_attention as ka

    prefix_language_model = ka.masks.Causal() | ka.masks.Prefix(2)
    assert prefix_language_model.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ·", "2   ■ ■ ■"]
    ```
    """

    left: Mask
    right: Mask

    def __str__(self):
        return f"({self.left} | {self.right})"

    def allows(self, i, j):
        return ops.logical_or(self.left.allows(i, j), self.right.allows(i, j))

    def reach(self):
        return self.left.reach() | self.right.reach()

    def outside(self):
        return self.left.outside() & self.right.outside()


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Not(Combination):
    """`~mask`: visible where `mask` does not allow it.

    ```python
    import keras_attention as ka

    later = ~ka.masks.Causal()
    assert later.draw(2).splitlines()[2:] == ["0   · ■", "1   · ·"]
    ```
    """

    mask: Mask

    def __str__(self):
        return f"~{self.mask}"

    def allows(self, i, j):
        return ops.logical_not(self.mask.allows(i, j))

    def reach(self):
        return self.mask.outside()

    def outside(self):
        return self.mask.reach()


class NamedMask(Mask, Part):
    """A short name for a combination of masks, which `parts()` spells out."""

    def parts(self):
        """Return the combination that this mask stands for."""
        raise NotImplementedError(f"{type(self).__name__}.parts")

    @property
    def is_band(self):
        return self.parts().is_band

    def allows(self, i, j):
        return self.parts().allows(i, j)

    def reach(self):
        return self.parts().reach()

    def outside(self):
        return self.parts().outside()


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Full(Mask, Part):
    """Every key is visible to every query: the same as no mask, at the same cost.

    ```python
    import keras_attention as ka

    assert ka.masks.materialize(ka.masks.Full(), range(3), range(3)) is None
    ```
    """

    relative = True
    is_band = True

    def allows(self, i, j):
        return ops.equal(i - j, i - j)

    def outside(self):
        return NOTHING


def expand_queries(positions):
    """Query positions (T,) or (B, T) -> int32 (1 or B, 1, T, 1)."""
    return ops.expand_dims(_rank_three(positions), axis=3)


def expand_keys(positions):
    """Key positions (S,) or (B, S) -> int32 (1 or B, 1, 1, S)."""
    return ops.expand_dims(_rank_three(positions), axis=2)


def _rank_three(positions):
    if not keras.backend.is_keras_tensor(positions):
        positions = ops.convert_to_tensor(positions)
    positions = ops.cast(positions, "int32")
    if len(positions.shape) not in (1, 2):
        raise ValueError(
            f"Positions must be of shape (length,) or (batch, length); received {positions.shape}."
        )
    axes = (0, 1) if len(positions.shape) == 1 else (1,)
    for axis in axes:
        positions = ops.expand_dims(positions, axis=axis)
    return positions


def _check_lengths(caller, query_length, key_length):
    key_length = query_length if key_length is None else key_length
    query_length = check_whole_number(caller, "query_length", query_length)
    return query_length, check_whole_number(caller, "key_length", key_length)


def _compute_cells(mask, queries, key_length):
    """Return whether `mask` allows each pair, as a NumPy bool array (queries, keys)."""
    allowed = mask.allows(expand_queries(queries), expand_keys(range(key_length)))
    allowed = ops.convert_to_numpy(allowed)
    return np.broadcast_to(allowed, (1, 1, len(queries), key_length))[0, 0]
