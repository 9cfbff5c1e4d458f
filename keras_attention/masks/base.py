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
    """Base class of masks: rules for which key positions a query position may attend to.

    A mask can be printed, compared, saved, drawn, and combined with `&`, `|` and `~`. To write a
    new mask, subclass `Mask` and `Part` as a frozen dataclass and define `allows`. If the mask
    allows only keys near the query, define `reach` too, so that kernels can skip hidden pairs.

    Positions default to 0..T-1 for queries and 0..S-1 for keys, as in Keras. Even if T != S,
    `Causal` therefore shows query 0 only key 0. If the queries are the last T of S tokens, pass
    query positions that start at S - T.

    ```python
    import dataclasses
    import keras
    import keras_attention as ka


    @keras.saving.register_keras_serializable(package="my_project")  # needed to load it
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
        """Reset the inherited bounds of a subclass whose `allows` differs from its parent's."""
        super().__init_subclass__(**kwargs)
        parents = cls.__mro__[1 : cls.__mro__.index(Mask)]
        if "allows" in vars(cls) and any("allows" in vars(parent) for parent in parents):
            for name in {"relative", "is_band", "reach", "outside"} - set(vars(cls)):
                setattr(cls, name, getattr(Mask, name))

    relative = False
    """Whether `allows` depends only on i - j, so that kernels can evaluate it once per distance.

    Set it to True in your own mask if this is so.
    """

    is_band = False
    """Whether `allows` is True for all pairs inside `band()` and for no others, as in `Causal`.

    Fused GPU attention then receives the two bounds instead of a mask tensor. Set it to True in
    your own mask if this is so.
    """

    def allows(self, i, j):
        """Return whether query position `i` may attend to key position `j`, a bool tensor.

        `i` and `j` are int tensors that broadcast: (T, 1) and (1, S), or (1 or B, 1, T, 1) and
        (1 or B, 1, 1, S).
        """
        raise NotImplementedError(f"{type(self).__name__}.allows")

    def check_length(self, length, exact=True):
        """Raise a ValueError if the mask does not fit a sequence of `length` tokens.

        Most masks fit any length. `length` is an int, or None if it is unknown. If `exact` is
        False, `length` may be less than the mask needs, as at the beginning of an image.
        """

    def reach(self):
        """Return a `Reach`: bounds on the pairs that the mask allows. The default has no bounds.

        With a bounded reach, kernels skip hidden pairs.

        ```python
        import keras_attention as ka

        mask = ka.masks.Window(3) | ka.masks.Global((0, 9))
        assert mask.reach() == ka.masks.Reach(left=2, right=2, tokens=(0, 9))
        ```
        """
        return Reach()

    def outside(self):
        """Return bounds on the pairs that the mask hides, a `Reach`: the reach of `~self`."""
        return Reach()

    def band(self):
        """Return the bounds `(left, right)` of the band that contains the allowed pairs.

        For every allowed pair of a query i and a key j, `-left <= j - i <= right`, or i or j is
        in `global_tokens()`. None means no bound on that side. The empty band is `(0, -1)`.

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
        """Return a sorted tuple of the positions that have allowed pairs outside `band()`.

        Example: `(ka.masks.Window(128) | ka.masks.Global(2)).global_tokens() == (0, 1)`
        """
        return self.reach().tokens

    def density(self, query_length, key_length=None):
        """Return the fraction of query-key pairs that the mask allows, from 0.0 to 1.0.

        `key_length` defaults to `query_length`.

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
        """Return the mask as a NumPy bool array (query_length, key_length), True = may attend.

        `key_length` defaults to `query_length`.

        Example: `ka.masks.Causal().to_numpy(3)` equals `np.tri(3, dtype=bool)`
        """
        query_length, key_length = _check_lengths("to_numpy", query_length, key_length)
        return _compute_cells(self, range(query_length), key_length)

    def draw(self, query_length=8, key_length=None, path=None):
        """Return the mask as a text grid with a row per query (■ visible key, · hidden key).

        Args:
            query_length: int, the number of queries.
            key_length: int, the number of keys. Defaults to `query_length`.
            path: file path to save the grid to as an image too (needs matplotlib), or None.

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
            f"{self} is neither true nor false. Combine masks with &, | and ~. With `and`, `or` "
            "and `not` one of them would be lost."
        )

    def __and__(self, other):
        return Both(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other):
        return Either(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self):
        return Not(self)


class Combination(Mask, Part):
    """Base class of masks that combine other masks, which are the dataclass fields."""

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


@dataclasses.dataclass(frozen=True)
class Pair(Combination):
    """Base class of combinations of two masks, `left` and `right`."""

    left: Mask
    right: Mask

    def __str__(self):
        return f"({self.left} {self.operator} {self.right})"


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Both(Pair):
    """`left & right`: key j is visible to query i when both masks allow it.

    ```python
    import keras
    import keras_attention as ka

    mask = ka.masks.Causal() & ka.masks.Window(128)  # the last 128 tokens, including the query's
    assert mask == ka.masks.Both(ka.masks.Causal(), ka.masks.Window(128))
    assert ka.masks.get(keras.saving.serialize_keras_object(mask)) == mask
    ```
    """

    operator = "&"

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
class Either(Pair):
    """`left | right`: key j is visible to query i when at least one mask allows it.

    ```python
    import keras_attention as ka

    prefix_language_model = ka.masks.Causal() | ka.masks.Prefix(2)
    assert prefix_language_model.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ·", "2   ■ ■ ■"]
    ```
    """

    operator = "|"

    def allows(self, i, j):
        return ops.logical_or(self.left.allows(i, j), self.right.allows(i, j))

    def reach(self):
        return self.left.reach() | self.right.reach()

    def outside(self):
        return self.left.outside() & self.right.outside()


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Not(Combination):
    """`~mask`: key j is visible to query i when `mask` hides it.

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
    """Base class of masks like `BigBird`, which give a combination of other masks a name.

    A subclass defines `parts()`, which returns the combination.

    ```python
    import dataclasses
    import keras_attention as ka


    @dataclasses.dataclass(frozen=True)
    class Recent(ka.masks.NamedMask):
        size: int

        def parts(self):
            return ka.masks.Causal() & ka.masks.Window(self.size)


    assert Recent(2).draw(3) == (ka.masks.Causal() & ka.masks.Window(2)).draw(3)
    ```
    """

    def parts(self):
        """Return the combination of masks that this mask is equivalent to."""
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
    """Every key is visible to every query. This mask costs the same as no mask.

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
    """Reshape query positions (T,) or (B, T) to int32 (1 or B, 1, T, 1)."""
    return ops.expand_dims(_rank_three(positions), axis=3)


def expand_keys(positions):
    """Reshape key positions (S,) or (B, S) to int32 (1 or B, 1, 1, S)."""
    return ops.expand_dims(_rank_three(positions), axis=2)


def _rank_three(positions):
    if not keras.backend.is_keras_tensor(positions):
        positions = ops.convert_to_tensor(positions)
    positions = ops.cast(positions, "int32")
    if len(positions.shape) not in (1, 2):
        raise ValueError(
            f"Positions have shape {tuple(positions.shape)}. Give (length,) or (batch, length)."
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
    """Evaluate `mask` for the positions `queries` and all keys: NumPy bool (queries, keys)."""
    allowed = mask.allows(expand_queries(queries), expand_keys(range(key_length)))
    allowed = ops.convert_to_numpy(allowed)
    return np.broadcast_to(allowed, (1, 1, len(queries), key_length))[0, 0]
