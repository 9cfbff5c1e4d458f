"""Scalings of rotary positions, for inputs longer than those in training."""

from keras_attention.core import part
from keras_attention.positions.scalings.base import Scaling, unscaled
from keras_attention.positions.scalings.linear import Linear
from keras_attention.positions.scalings.llama3 import Llama3
from keras_attention.positions.scalings.long_rope import LongRoPE
from keras_attention.positions.scalings.ntk import NTK, DynamicNTK
from keras_attention.positions.scalings.yarn import YaRN

NAMES = {
    "linear": Linear,
    "ntk": NTK,
    "dynamic_ntk": DynamicNTK,
    "yarn": YaRN,
    "long_rope": LongRoPE,
    "llama3": Llama3,
}


def get(identifier):
    """Return the scaling that `identifier` describes.

    `identifier` is a scaling, a name in `NAMES`, or the config of a scaling. None returns None.

    ```python
    import keras_attention as ka

    config = {"class_name": "linear", "config": {"factor": 4}}
    assert ka.positions.scalings.get(config) == ka.positions.scalings.Linear(factor=4)
    assert ka.positions.scalings.get("llama3").original_length == 8192
    ```
    """
    return part.get(identifier, names=NAMES, family="scaling", base=Scaling)


__all__ = [
    "NAMES",
    "NTK",
    "DynamicNTK",
    "Linear",
    "Llama3",
    "LongRoPE",
    "Scaling",
    "YaRN",
    "get",
    "unscaled",
]
