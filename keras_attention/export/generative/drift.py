"""How far a quantized decoder drifts from the model on real text, position by position.

Free-running comparisons say little: after the first different token the texts have nothing to do
with one another. Teacher-forced, both read the same tokens, through the cache, and what is compared
is what each would say next.
"""

import collections

import numpy as np

from keras_attention.export import runner
from keras_attention.export.generative import whole
from keras_attention.export.generative.endpoints import INDEX, START, TOKENS
from keras_attention.export.report import Drift


def measure(path, generation):
    """The `Drift` of the LiteRT file at `path` on the examples of `generation`."""
    file = File(path, generation.decoder)
    sums = collections.defaultdict(lambda: np.zeros(3))  # position -> tokens, agreeing, max error
    for batch in generation.examples:
        tokens, source = split(generation.decoder, batch)
        tokens = tokens[:, : generation.settings.max_length]
        expected = whole.logits(generation.decoder, tokens, source)
        rows = len(tokens)
        for position, got in enumerate(file.logits(tokens, source)):
            counted = tokens[:, position] != 0
            same = got.argmax(-1) == expected[:, position].argmax(-1)
            error = np.abs(got - expected[:, position]).max(-1)
            if counted.any():
                known = sums[position]
                known[:2] += counted.sum(), same[counted].sum()
                known[2] = max(known[2], error[counted].max())
    return _drift(sums)
