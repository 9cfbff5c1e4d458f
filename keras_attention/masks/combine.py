"""Masks made of masks: what `&`, `|` and `~` build."""

import dataclasses

import keras
from keras import ops

from keras_attention.masks.base import Mask
from keras_attention.part import Part


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

    @property
    def relative(self):
        return all(getattr(self, field.name).relative for field in dataclasses.fields(self))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Both(Combination):
    """`left & right`: visible where both allow it.

    Example:

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

    def reach(self):
        return self.left.reach() & self.right.reach()

    def outside(self):
        return self.left.outside() | self.right.outside()


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Either(Combination):
    """`left | right`: visible where at least one allows it.

    Example:

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

    Example:

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
