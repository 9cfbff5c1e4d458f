"""A decoder that is a table: its logits follow from all tokens of a row, by a hash."""

import itertools

import numpy as np
from keras import ops

from keras_attention.core.special_ids import Padding


class Toy:
    """A stand-in for a `Decoder`. `logits(text)` computes the same in NumPy.

    Args:
        vocabulary_size: int.
        seed: int, of the table.
        scale: float, of the logits.
        has_source: bool, whether it is an encoder-decoder. The sum of a source changes the hash.
    """

    encoder = model = None
    padding = source_padding = Padding()
    state_names = frozenset()
    bins = 97

    def __init__(self, vocabulary_size, seed=0, scale=1.5, has_source=False):
        self.vocabulary_size, self.has_source = vocabulary_size, has_source
        random = np.random.default_rng(seed)
        self.table = random.normal(size=(self.bins, vocabulary_size), scale=scale)
        self.table = self.table.astype("float32")
        self.factors = random.integers(1, self.bins, size=128).astype("int32")

    def cache_shapes(self, max_length, memory_length=None, dtype=None):
        return {"seen": ((max_length,), "int32")}

    def check_lengths(self, prompt_length, max_length):
        assert max_length <= len(self.factors)

    def start(self, batch_size, max_length, source=None, start=None):
        cache = {"seen": ops.zeros((batch_size, max_length), dtype="int32")}
        cache |= self.encode(source, cache) if self.has_source else {}
        return cache if start is None else cache | {"start": start}

    def encode(self, source, cache):
        return {"source": ops.sum(source, axis=1)}

    def step(self, tokens, cache, index):
        batch, new = ops.shape(tokens)
        seen = ops.slice_update(cache["seen"], (0, index), tokens)
        length = ops.shape(seen)[1]
        start = cache.get("start", ops.zeros((batch,), dtype="int32"))
        positions = ops.expand_dims(ops.arange(length, dtype="int32"), axis=0)
        since = positions - ops.expand_dims(start, axis=1)
        factors = ops.take(ops.convert_to_tensor(self.factors), ops.maximum(since, 0), axis=0)
        terms = ops.where(since >= 0, factors * (seen + 1), 0)
        sums = ops.take(ops.cumsum(terms, axis=1), ops.arange(new) + index, axis=1)
        if self.has_source:
            sums = sums + ops.expand_dims(cache["source"], axis=1)
        logits = ops.take(ops.convert_to_tensor(self.table), sums % self.bins, axis=0)
        return logits, dict(cache, seen=seen)

    def reorder(self, cache, rows, *, source=True):
        return {name: ops.take(x, rows, axis=0) for name, x in cache.items()}

    def logits(self, text, source=()):
        """Return the logits (V,) after the tokens of one row."""
        text = np.asarray(text)
        total = int((self.factors[: len(text)] * (text + 1)).sum() + sum(source))
        return self.table[total % self.bins]

    def log_probabilities(self, text, source=()):
        logits = self.logits(text, source).astype("float64")
        return logits - np.log(np.exp(logits).sum())

    def all_sequences(self, length, end_token_ids=(), padding_id=0):
        """Return all results of at most `length` tokens: cut off, or ended before."""
        tokens = [i for i in range(self.vocabulary_size) if i != padding_id]
        for size in range(1, length + 1):
            for text in itertools.product(tokens, repeat=size):
                ended = [token in end_token_ids for token in text]
                if not any(ended[:-1]) and (size == length or ended[-1]):
                    yield text

    def total(self, prompt, text, source=()):
        """Return the log-probability of `text` after `prompt`."""
        return sum(
            self.log_probabilities((*prompt, *text[:i]), source)[token]
            for i, token in enumerate(text)
        )
