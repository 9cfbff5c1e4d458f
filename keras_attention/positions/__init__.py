"""Position encodings, which add to tokens, rotate queries and keys, or add to scores."""

from keras_attention.core import part
from keras_attention.positions import scalings
from keras_attention.positions.alibi import ALiBi, LearnedALiBi
from keras_attention.positions.base import ROLES, Position, Weighted
from keras_attention.positions.combined import CombinedPositions, for_role
from keras_attention.positions.disentangled import Disentangled
from keras_attention.positions.indices import count, distances
from keras_attention.positions.learned import Learned, Learned2D
from keras_attention.positions.patch_grid import interpolate
from keras_attention.positions.relative_bias import RelativeBias
from keras_attention.positions.rotary import Rotary, XPos, convert_layout
from keras_attention.positions.scalar import Scalar
from keras_attention.positions.shaw import Shaw
from keras_attention.positions.sinusoidal import Sinusoidal, Sinusoidal2D
from keras_attention.positions.swin_bias import ContinuousBias, SwinBias
from keras_attention.positions.transformer_xl import TransformerXL

NAMES = {
    "sinusoidal": Sinusoidal,
    "sinusoidal_2d": Sinusoidal2D,
    "learned": Learned,
    "learned_2d": Learned2D,
    "scalar": Scalar,
    "rotary": Rotary,
    "xpos": XPos,
    "alibi": ALiBi,
    "learned_alibi": LearnedALiBi,
    "relative_bias": RelativeBias,
    "shaw": Shaw,
    "transformer_xl": TransformerXL,
    "disentangled": Disentangled,
    "swin_bias": SwinBias,
    "continuous_bias": ContinuousBias,
}


def get(identifier, dtype=None):
    """Return the position encoding that `identifier` describes.

    Args:
        identifier: a position encoding, a name in `NAMES`, or its config. None returns None. A list
            of these returns their combination, a `CombinedPositions`.
        dtype: dtype policy for position encodings with weights, if they are created from a name.

    ```python
    import keras_attention as ka

    assert ka.positions.get("rotary") == ka.positions.Rotary()
    assert ka.positions.get(["rotary", "alibi"]).roles == {"rotate", "bias"}
    ```
    """
    if isinstance(identifier, list | tuple):
        parts = [get(one, dtype) for one in identifier]
        return CombinedPositions(parts, **({} if dtype is None else {"dtype": dtype}))
    return part.get(identifier, names=NAMES, family="position", base=Position, dtype=dtype)


__all__ = [
    "NAMES",
    "ROLES",
    "ALiBi",
    "ContinuousBias",
    "Disentangled",
    "Learned",
    "Learned2D",
    "LearnedALiBi",
    "Position",
    "RelativeBias",
    "Rotary",
    "Scalar",
    "CombinedPositions",
    "Shaw",
    "Sinusoidal",
    "Sinusoidal2D",
    "SwinBias",
    "TransformerXL",
    "Weighted",
    "XPos",
    "convert_layout",
    "count",
    "distances",
    "for_role",
    "get",
    "interpolate",
    "scalings",
]
