"""Combined positions, and the parts of them that play a role."""

import keras
from keras import ops

from keras_attention.core.part import LayerPart
from keras_attention.core.sharing import serialize_shared
from keras_attention.positions.base import ROLES, Position


# The registered name is that of saved models.
@keras.saving.register_keras_serializable(package="keras_attention", name="Several")
class CombinedPositions(Position, LayerPart):
    """Several positions as one: they embed and rotate in turn, and their biases are summed.

    `get` makes one of a list, so a list works wherever a position is expected. It is a layer,
    because its parts may be layers, and has every role of its parts.

    Args:
        parts: list of positions, at least one.

    ```python
    import numpy as np
    import keras_attention as ka

    both = ka.positions.get(["alibi", ka.positions.Rotary()])
    query, where = np.ones((1, 3, 2, 4), "float32"), np.arange(3)
    alibi = ka.positions.ALiBi().bias(where, where, query)
    assert both.roles == {"bias", "rotate"}
    assert np.array_equal(both.bias(where, where, query), alibi)
    ```
    """

    def __init__(self, parts, **kwargs):
        super().__init__(**kwargs)
        self.parts = list(parts)
        if not self.parts or not all(isinstance(part, Position) for part in self.parts):
            raise ValueError(
                f"CombinedPositions(parts={parts!r}): parts must be a list of positions."
            )

    @property
    def roles(self):
        return frozenset().union(*(part.roles for part in self.parts))

    def build(self, shape):
        fitting = {"embed"} if len(shape) == 3 else {"rotate", "bias"}
        if foreign := [part for part in self.parts if not part.roles & fitting]:
            raise ValueError(
                f"{foreign[0]!r} does not {' or '.join(sorted(fitting))}, which is all that a "
                f"position built with shape {tuple(shape)} can do here. Give it to the layer that "
                "uses it: embed to the embedding, rotate and bias to attention."
            )
        for part in self.parts:
            if isinstance(part, keras.layers.Layer) and not part.built:
                part.build(shape)

    def check_length(self, length, exact=True):
        for part in self.parts:
            part.check_length(length, exact)

    def embed(self, x, positions=None):
        total = ops.cast(x, "float32")  # rounded once, not after each part
        for part in self.parts:
            total = part.embed(total, positions)
        return ops.cast(total, x.dtype)

    def rotate(self, x, positions=None):
        rotated = ops.cast(x, "float32")
        for part in self.parts:
            rotated = part.rotate(rotated, positions)
        return ops.cast(rotated, x.dtype)

    def rotate_key(self, x, positions=None):
        rotated = ops.cast(x, "float32")
        for part in self.parts:
            rotated = part.rotate_key(rotated, positions)
        return ops.cast(rotated, x.dtype)

    def bias(self, query_positions, key_positions, query, key=None):
        return _sum(p.bias(query_positions, key_positions, query, key) for p in self.parts)

    def values(self, query_positions, key_positions, weights):
        return _sum(p.values(query_positions, key_positions, weights) for p in self.parts)

    def compute_output_spec(self, x, positions=None):
        for part in self.parts:
            if isinstance(part, keras.layers.Layer):
                part.compute_output_spec(x, positions)
        return keras.KerasTensor(x.shape, x.dtype)

    def get_config(self):
        parts = [serialize_shared(part) for part in self.parts]
        return {**super().get_config(), "parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = [keras.saving.deserialize_keras_object(part) for part in config.get("parts", [])]
        return super().from_config({**config, "parts": parts})


def _sum(terms):
    """Return the sum of the terms that are not None, or None."""
    terms = [term for term in terms if term is not None]
    return sum(terms[1:], terms[0]) if terms else None


def for_role(position, *roles):
    """Return the parts of `position` that have one of `roles`, as one position, or None.

    A builder takes one `position` argument and passes its parts to the layers that use them.

    Args:
        position: a position or None.
        roles: "embed", "rotate", "bias".

    ```python
    import keras_attention as ka

    position = ka.positions.get(["sinusoidal", "alibi"])
    assert ka.positions.for_role(position, "embed") == ka.positions.Sinusoidal()
    assert ka.positions.for_role(position, "rotate", "bias") == ka.positions.ALiBi()
    assert ka.positions.for_role(position, "rotate") is None
    ```
    """
    if unknown := [role for role in roles if role not in ROLES]:
        raise ValueError(f"Unknown role {unknown[0]!r}. Known: {', '.join(ROLES)}.")
    if position is None:
        return None
    parts = position.parts if isinstance(position, CombinedPositions) else [position]
    playing = [part for part in parts if part.roles & set(roles)]
    if len(playing) > 1 and playing != parts:
        return CombinedPositions(playing, dtype=position.dtype_policy)
    return position if playing == parts else playing[0] if playing else None
