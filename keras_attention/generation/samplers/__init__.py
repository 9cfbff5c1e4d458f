"""Samplers for `generate`: how the next token is chosen from the logits of a model."""

from keras_attention.core import part
from keras_attention.generation.samplers.base import Sampler, TokenSampler, draw
from keras_attention.generation.samplers.beam import Beam
from keras_attention.generation.samplers.greedy import Greedy
from keras_attention.generation.samplers.sample import Sample

NAMES = {"greedy": Greedy, "sample": Sample, "beam": Beam}


def get(identifier):
    """Return the `Sampler` that `identifier`, a sampler, its name or its config, describes.

    Raise a ValueError if `identifier` is None or an unknown name.

    ```python
    import keras_attention as ka

    assert ka.generation.samplers.get("sample") == ka.generation.Sample(temperature=1.0)
    ```
    """
    if identifier is None:
        raise ValueError(f"sampler=None: expected a Sampler or one of {', '.join(NAMES)}.")
    return part.get(identifier, names=NAMES, family="sampler", base=Sampler)


__all__ = ["NAMES", "Beam", "Greedy", "Sample", "Sampler", "TokenSampler", "draw", "get"]
