"""Several position encodings combined into one, and `for_role`, which selects among them."""

import keras
from keras import ops

from keras_attention.core.part import LayerPart
from keras_attention.core.sharing import serialize_shared
from keras_attention.positions.base import ROLES, Position


# Saved models contain this registered name, so it must not change.
@keras.saving.register_keras_serializable(package="keras_attention", name="Several")
class CombinedPositions(Position, LayerPart):
    """Several position encodings as one: applied in turn, with their biases summed.

    A combination has all roles of its parts. It is a layer, because its parts may be layers. `get`
    converts a list to a combination, so a list works wherever a position encoding is expected.

    Args:
        parts: list of position encodings, at least one.

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
                f"{foreign[0]!r} does not {' or '.join(sorted(fitting))}, but a layer that builds "
                f"it with shape {tuple(shape)} can do nothing else. Give encodings with the role "
                "embed to the embedding, and those that rotate or bias to attention."
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
    """Return the sum of the terms that are not None, or None if all are None."""
    terms = [term for term in terms if term is not None]
    return sum(terms[1:], terms[0]) if terms else None


def for_role(position, *roles):
    """Select from a position encoding the parts that have at least one of `roles`.

    A model has a single argument `position`, which may combine several encodings. Those that add to
    tokens ("embed") belong to its embedding, and all others to its attention layers.

    Args:
        position: a position encoding, a `CombinedPositions`, or None.
        roles: any of "embed", "rotate" and "bias".

    Returns:
        A position encoding, a `CombinedPositions` if several parts have one of the roles, or None
        if no part has.

    Raises:
        ValueError: a role is unknown.

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
