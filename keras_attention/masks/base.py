"""What every mask is: a rule about two positions."""

from keras_attention.masks.reach import Reach


class Mask:
    """Says which key positions each query position may attend to.

    A mask is data: it is printed, compared, saved, combined with `&`, `|` and `~`, and drawn, all
    without a tensor. A new one is a frozen dataclass under `Mask` and `Part` with `allows`, and
    with `reach` where it does not reach everywhere, which is what lets a kernel skip work.

    Positions are whatever the caller says they are. Where a layer is given none, queries count
    0..T-1 and keys 0..S-1, as in Keras: with T != S the pattern is aligned at the top left, so
    `Causal` shows query 0 nothing but key 0. To align at the bottom right (new queries at the end
    of a longer memory), give query positions that start at S - T.

    Example:

    ```python
    import dataclasses
    import keras
    import keras_attention as ka


    @keras.saving.register_keras_serializable(package="my_project")  # or it saves, and cannot load
    @dataclasses.dataclass(frozen=True)
    class Future(ka.masks.Mask, ka.part.Part):
        "Key j is visible to query i when j > i."

        def allows(self, i, j):
            return j > i


    assert (~Future()).draw(2) == ka.masks.Causal().draw(2)
    assert ka.masks.get(keras.saving.serialize_keras_object(~Future())) == ~Future()
    ```
    """

    def __init_subclass__(cls, **kwargs):
        """A mask that redefines `allows` inherits nothing of what was said of the old one."""
        super().__init_subclass__(**kwargs)
        parents = cls.__mro__[1 : cls.__mro__.index(Mask)]
        if "allows" in vars(cls) and any("allows" in vars(parent) for parent in parents):
            for name in {"relative", "reach", "outside"} - set(vars(cls)):
                setattr(cls, name, getattr(Mask, name))

    relative = False
    """Whether `allows` asks about i - j alone, as `Causal` does: kernels then need one small table.

    Set it to True in a mask of your own where that holds.
    """

    def allows(self, i, j):
        """Whether query position `i` may attend to key position `j`, elementwise.

        Args:
            i: int tensor, (T, 1), or (1 or B, 1, T, 1).
            j: int tensor that broadcasts with it, (1, S), or (1 or B, 1, 1, S).

        Returns:
            bool tensor, True = may attend, that broadcasts to both.
        """
        raise NotImplementedError(f"{type(self).__name__}.allows")

    def reach(self):
        """A bound on the pairs this mask allows, as a `Reach`; everywhere, unless a mask says less.

        It speaks of positions, so that a kernel which cuts a band out of the tensors may use it
        where positions count up by one along them, from any start.

        Example:

        ```python
        import keras_attention as ka

        mask = ka.masks.Window(3) | ka.masks.Global((0, 9))
        assert mask.reach() == ka.masks.Reach(left=2, right=2, tokens=(0, 9))
        ```
        """
        return Reach()

    def outside(self):
        """The reach of `~self`: a bound on the pairs this mask does not allow."""
        return Reach()

    def band(self):
        """`(left, right)`: the diagonals between which allowed pairs lie; None is without bound.

        Every allowed pair (i, j) has `-left <= j - i <= right` or is of a query or a key among
        `global_tokens()`. The band without any pair is `(0, -1)`.

        Example:

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
        """Positions that see, or are seen, beyond `band()`: a sorted tuple.

        Example:

        ```python
        import keras_attention as ka

        assert (ka.masks.Window(128) | ka.masks.Global(2)).global_tokens() == (0, 1)
        ```
        """
        return self.reach().tokens

    def density(self, query_length, key_length=None):
        """Which part of all pairs is allowed, 0.0 to 1.0, for T queries and S (or T) keys.

        Example:

        ```python
        import keras_attention as ka

        assert ka.masks.Causal().density(4) == 10 / 16
        ```
        """
        from keras_attention.masks import drawing  # drawing needs NumPy

        return drawing.density(self, query_length, key_length)

    def draw(self, query_length=8, key_length=None, path=None):
        """The mask as a text grid, a row for each query (■ may attend, · may not).

        Args:
            query_length, key_length: int, T and S; S defaults to T.
            path: file to write the same grid to as a picture, for which matplotlib is needed.

        Returns:
            The grid as text.

        Example:

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
        from keras_attention.masks import drawing  # drawing needs NumPy and, for files, matplotlib

        cells = drawing.grid(self, query_length, key_length)
        if path is not None:
            drawing.write(cells, path, title=str(self))
        return drawing.text(cells)

    def __bool__(self):
        raise TypeError(
            f"{self} is neither true nor false. Combine masks with &, | and ~; "
            "`and`, `or` and `not` would leave one of them out."
        )

    def __and__(self, other):
        return _combine("Both", self, other)

    def __or__(self, other):
        return _combine("Either", self, other)

    def __invert__(self):
        return _combine("Not", self)


def _combine(name, *masks):
    if not all(isinstance(mask, Mask) for mask in masks):
        return NotImplemented
    from keras_attention.masks import combine  # which is made of masks itself

    return getattr(combine, name)(*masks)
