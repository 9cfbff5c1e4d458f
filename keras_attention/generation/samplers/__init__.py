"""Samplers: parts that find a sequence in the distributions of a model, token by token."""

from keras_attention.core import part
from keras_attention.generation.samplers.base import Sampler, TokenSampler, draw
from keras_attention.generation.samplers.beam import Beam
from keras_attention.generation.samplers.greedy import Greedy
from keras_attention.generation.samplers.sample import Sample

NAMES = {"greedy": Greedy, "sample": Sample, "beam": Beam}


def get(identifier):
    """Return the sampler that `identifier` means: one, its name or its config.

    ```python
    import keras_attention as ka

    assert ka.generation.samplers.get("sample") == ka.generation.Sample(temperature=1.0)
    ```
    """
    if identifier is None:
        raise ValueError(f"sampler=None: expected one of {', '.join(NAMES)}, or a Sampler.")
    return part.get(identifier, names=NAMES, family="sampler", base=Sampler)


__all__ = ["NAMES", "Beam", "Greedy", "Sample", "Sampler", "TokenSampler", "draw", "get"]
