"""`StepReader`: runs a file token by token, with its signature `step`."""

import numpy as np

from keras_attention.export.checks.runner import load

TOKENS, INDEX, START = "token_ids", "index", "start"  # inputs of `step`


class StepReader:
    """Calls `step` of a SavedModel or LiteRT file, and `encode` for an encoder-decoder.

    If the file has a fixed batch size, rows must be split with `split_rows`, and missing rows are
    filled with copies. If `step` reads a fixed number of tokens, `read` calls it several times.

    Args:
        path: path of the file or folder.
        has_source: bool, whether the model is an encoder-decoder.
    """

    def __init__(self, path, has_source=False):
        self.step = load(path, "step")
        self.encode = load(path, "encode") if has_source else None
        self.cache_names = self.step.inputs.keys() - {TOKENS, INDEX, START}

    def split_rows(self, count):
        """Return a list of slices that split `count` rows into batches for the file."""
        rows = self.step.shapes[TOKENS][0] or count
        return [slice(start, start + rows) for start in range(0, count, rows)]

    def start(self, count, source=None):
        """Return the initial cache for `count` rows, a dict of arrays.

        Args:
            count: int, the number of rows.
            source: dict of arrays, the inputs of the encoder. None for a language model.
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
        """Run the file on ids (B, T), whose first position in the sequence is `index`.

        `tokens` are the ids. `cache` is a dict of arrays, from `start` or from the last call of
        `read`.

        Returns:
            The logits (B, T, vocabulary_size), and the new cache.
        """
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
