"""How far a quantized decoder drifts from the model on real text, position by position.

Free-running comparisons say little: after the first token that differs, two texts have nothing to
do with one another. Teacher-forced, both read the same tokens, through the cache, and what is
compared is what each would say next.
"""

import numpy as np

from keras_attention.export import runner
from keras_attention.export.generative import whole
from keras_attention.export.generative.endpoints import INDEX, START, TOKENS
from keras_attention.export.report import Drift

LONGEST = 256  # positions; a report is no evaluation


def measure(path, generation):
    """The `Drift` of the LiteRT file at `path` on the examples of `generation`."""
    decoder, settings = generation.decoder, generation.settings
    text = Text(path, decoder)
    length = min(LONGEST, settings.max_length)
    counted, same, error = np.zeros(length, int), np.zeros(length, int), np.zeros(length)
    for batch in generation.examples:
        tokens, source = whole.split(decoder, batch)
        tokens = tokens[:, :length]
        expected = whole.logits(decoder, tokens, source)
        for i, got in enumerate(text.logits(tokens, source)):
            real = tokens[:, i] != 0
            own = expected[:, i]
            counted[i] += real.sum()
            same[i] += (got.argmax(-1) == own.argmax(-1))[real].sum()
            error[i] = max(error[i], np.abs(got - own).max(-1)[real].max(initial=0.0))
    kept = counted > 0
    return Drift(
        tokens=tuple(counted[kept].tolist()),
        argmax_agreement=tuple((same[kept] / counted[kept]).tolist()),
        max_abs_error=tuple(error[kept].tolist()),
    )


class Text:
    """A LiteRT file as a reader of given texts, one token after the other."""

    def __init__(self, path, decoder):
        self.step = runner.LiteRT(path, "step")
        self.encode = runner.LiteRT(path, "encode") if decoder.has_source else None
        details = self.step.function.get_input_details()
        self.shapes = {name: details[name]["shape_signature"] for name in self.step.inputs}

    def logits(self, tokens, source=None):
        """Yields the logits (B, V) after each column of ids (B, T)."""
        fixed = self.shapes[TOKENS][0]
        rows = len(tokens) if fixed < 0 else fixed
        parts = [
            self._part(tokens[k : k + rows], _rows(source, k, rows), rows)
            for k in range(0, len(tokens), rows)
        ]
        for several in zip(*parts, strict=True):
            yield np.concatenate(several)

    def _part(self, tokens, source, rows):
        """The same for as many rows as the file takes; missing ones are filled up."""
        count = len(tokens)
        again = np.arange(rows) % count
        cache = self._begin(_rows(source, again), rows)
        for i in range(tokens.shape[1]):
            inputs = {TOKENS: tokens[again, i : i + 1], INDEX: i, START: np.zeros(rows), **cache}
            outputs = self.step({name: inputs[name] for name in self.step.inputs})
            cache |= {name: outputs[name] for name in cache.keys() & outputs.keys()}
            yield outputs["logits"][:count, 0]

    def _begin(self, source, rows):
        if self.encode:
            return self.encode(source)
        names = self.shapes.keys() - {TOKENS, INDEX, START}
        return {n: np.zeros((rows, *self.shapes[n][1:]), self.step.inputs[n]) for n in names}


def _rows(source, *which):
    """Rows of a dict of arrays, by their numbers or from and how many; None stays None."""
    if source is None:
        return None
    if len(which) == 2:
        which = (slice(which[0], which[0] + which[1]),)
    return {name: array[which[0]] for name, array in source.items()}
