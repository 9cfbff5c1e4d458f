"""What a user asks of `generate`, checked, and made into tensors and rules."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention import checks
from keras_attention.generation import constraints as constraint_parts
from keras_attention.generation import penalties as penalty_parts
from keras_attention.generation import prompts, samplers
from keras_attention.generation.compiled import Spec
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.rules import Rules


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be written.

    Attributes:
        decoder: `Decoder`, or what does as one does.
        rules: `Rules`.
        inputs: dict of arrays, as `loop.write` takes them.
        number: int, how many new tokens are wanted.
        options: dict, how the cache is made.
    """

    decoder: object
    rules: Rules
    inputs: dict
    number: int
    options: dict


def prepare(
    model,
    prompt,
    max_new_tokens,
    sampler,
    *,
    source=None,
    begin_id=None,
    end_id=None,
    padding_id=0,
    min_new_tokens=0,
    repetition_penalty=None,
    no_repeat_ngram_size=None,
    allowed_ids=None,
    penalties=(),
    constraints=(),
    seed=None,
    max_length=None,
    memory_length=None,
    cache_dtype=None,
    return_scores=False,
    spare=0,
):
    """The `Request` of the arguments of `generate`; `spare` places are kept free behind."""
    decoder = decoder_of(model)
    if decoder.has_source and source is None:
        source, prompt = prompt, None
    ends = () if end_id is None else constraint_parts.allowed.whole_ids("generate", end_id)
    ...
