"""Files that decode, read token by token through their signature `step`."""

import numpy as np

from keras_attention.export.checks.runner import load

TOKENS, INDEX, START = "token_ids", "index", "start"  # inputs of `step`


class StepReader:
    """The signature `step` of a SavedModel or LiteRT file, and `encode` of an encoder-decoder.

    A file of a fixed batch takes any number of rows in turns, and fills up missing ones; one that
    takes a fixed number of tokens takes longer texts in pieces.

    Args:
        path: the file or folder.
        has_source: bool, whether the file is of an encoder-decoder.
    """

    def __init__(self, path, has_source=False):
        self.step = load(path, "step")
        self.encode = load(path, "encode") if has_source else None
        self.cache_names = self.step.inputs.keys() - {TOKENS, INDEX, START}

    def split_rows(self, count):
        """Slices of `count` rows, each of which the file takes in one turn."""
        rows = self.step.shapes[TOKENS][0] or count
        return [slice(start, start + rows) for start in range(0, count, rows)]

    def start(self, count, source=None):
        """Return the cache before the first token of `count` rows: what `encode` gives, and zeros.

        Args:
            source: dict of arrays, the encoder's inputs.
        """
        rows = self.step.shapes[TOKENS][0] or count
        cache = {}
        if self.encode is not None:
            again = np.arange(rows) % count
            cache = self.encode({name: array[again] for name, array in source.items()})
        for name in self.cache_names - cache.keys():
            shape = self.step.shapes[name][1:]
            cache[name] = np.zeros((rows, *shape), self.step.inputs[name])
        return cache

    def read(self, tokens, index, cache):
        """Logits (B, T, V) of ids (B, T) from position `index` on, and the cache with them."""
        count = len(tokens)
        rows, length = self.step.shapes[TOKENS]
        rows, length = rows or count, length or tokens.shape[1]
        tokens, logits = tokens[np.arange(rows) % count], []
        for k in range(0, tokens.shape[1], length):
            inputs = {TOKENS: tokens[:, k : k + length], INDEX: index + k, START: np.zeros(rows)}
            inputs |= cache
            outputs = self.step({name: inputs[name] for name in self.step.inputs})
            cache = cache | {name: outputs[name] for name in cache.keys() & outputs.keys()}
            logits.append(outputs["logits"][:count])
        return np.concatenate(logits, axis=1), cache
