"""Positions: where a token is. embed(x) | rotate(q), rotate(k) | bias(i, j), all in float32."""

from keras_attention import part
from keras_attention.positions.alibi import ALiBi
from keras_attention.positions.base import ROLES, Position
from keras_attention.positions.counting import count, distances
from keras_attention.positions.learned import Learned
from keras_attention.positions.relative_bias import RelativeBias
from keras_attention.positions.rotary import Rotary
from keras_attention.positions.scalar import Scalar
from keras_attention.positions.several import Several, for_role
from keras_attention.positions.sinusoidal import Sinusoidal
from keras_attention.positions.weighted import Weighted

NAMES = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "scalar": Scalar,
    "rotary": Rotary,
    "alibi": ALiBi,
    "relative_bias": RelativeBias,
}


def get(identifier, dtype=None):
    """The position that `identifier` means: one, its name, its config, None, or a list of these.

    Example:

    ```python
    import keras_attention as ka

    assert ka.positions.get("rotary") == ka.positions.Rotary()
    assert ka.positions.get(["rotary", "alibi"]).roles == {"rotate", "bias"}
    ```
    """
    if isinstance(identifier, list | tuple):
        parts = [get(one, dtype) for one in identifier]
        return Several(parts, **({} if dtype is None else {"dtype": dtype}))
    return part.get(identifier, names=NAMES, family="position", base=Position, dtype=dtype)


__all__ = [
    "NAMES",
    "ROLES",
    "ALiBi",
    "Learned",
    "Position",
    "RelativeBias",
    "Rotary",
    "Scalar",
    "Several",
    "Sinusoidal",
    "Weighted",
    "count",
    "distances",
    "for_role",
    "get",
]
