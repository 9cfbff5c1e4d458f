"""Language models in files, whatever the format: what comes next in a text, and how it goes on."""

import numpy as np

# Loading models registers the layers that a .keras file names.
from keras_attention import export, generation, models  # noqa: F401
from keras_attention.export import files, keras_file, manifest
from keras_attention.export.generative.endpoints import INDEX, START, TOKENS
from keras_attention.generation.request import chance
from keras_attention.generation.samplers.base import IMPOSSIBLE


def load(path):
    """The model in a `.keras` file, or the signature `step` of one that was exported."""
    return Whole(path) if files.kind(path) == "keras" else Stepped(path)


class Whole:
    """A Keras model.

    Attributes:
        max_length: None, there is room for texts of any length.
    """

    max_length = None

    def __init__(self, path):
        self.model = keras_file.load(path)

    def logits(self, ids):
        """Ids (B, T) -> logits (B, T, V), an array."""
        return np.asarray(self.model.predict_on_batch(ids))

    def stream(self, ids, number, sampler, *, end_id=None, seed=None):
        """Yields the ids, ints, that follow `ids` (T,): `number` of them, or up to END."""
        options = {"end_id": end_id, "seed": seed}
        for (token,) in generation.stream(self.model, [ids], number, sampler, **options):
            yield int(token)


class Stepped:
    """A SavedModel or LiteRT file that takes new tokens, and keeps what it saw in a cache.

    With the same seed it draws what `Whole` draws.

    Attributes:
        max_length: int, how many tokens there is room for.
    """

    def __init__(self, path):
        self.run = export.load(path, "step")
        step = next(s for s in export.inspect(path).signatures if s.name == "step")
        self.shapes = {tensor.name: tensor.shape for tensor in step.inputs}
        known = manifest.read(path.parent)["files"][path.name]["generation"]
        self.max_length = known["max_length"]

    def logits(self, ids):
        rows, _ = self.shapes[TOKENS]
        parts = [ids] if rows is None else np.split(ids, range(rows, len(ids), rows))
        return np.concatenate([self._read(part, 0, self._empty(len(part)))[0] for part in parts])

    def stream(self, ids, number, sampler, *, end_id=None, seed=None):
        uniform = chance(seed, sampler, (number, 1))[0]
        tokens, index, cache = ids.reshape(1, -1), 0, self._empty(1)
        for numbers in uniform:
            logits, cache = self._read(tokens, index, cache)
            index += tokens.shape[1]
            last = logits[:, -1]
            last[:, 0] = IMPOSSIBLE  # padding is never chosen
            tokens = np.asarray(sampler.choose(last, numbers)).reshape(1, 1)
            yield int(tokens[0, 0])
            if tokens[0, 0] == end_id:
                return

    def _empty(self, rows):
        """The cache before the first token."""
        names = self.shapes.keys() - {TOKENS, INDEX, START}
        rows = self.shapes[TOKENS][0] or rows
        return {n: np.zeros((rows, *self.shapes[n][1:]), self.run.inputs[n]) for n in names}

    def _read(self, tokens, index, cache):
        """Logits after `tokens` (B, T), and the cache with them.

        A file with a fixed number of rows gets more of them, and one that takes a fixed number of
        tokens takes several turns.
        """
        rows, length = self.shapes[TOKENS]
        count = len(tokens)
        tokens = np.resize(tokens, (rows or count, tokens.shape[1]))
        length, found = length or tokens.shape[1], []
        for k in range(0, tokens.shape[1], length):
            call = {
                TOKENS: tokens[:, k : k + length],
                INDEX: index + k,
                START: np.zeros(len(tokens)),
            }
            outputs = self.run(call | cache)
            cache = cache | {name: outputs[name] for name in cache.keys() & outputs.keys()}
            found.append(outputs["logits"][:count])
        return np.concatenate(found, axis=1), cache
