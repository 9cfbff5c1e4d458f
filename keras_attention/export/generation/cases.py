"""The test cases for the endpoints of a model that generates text."""

import dataclasses

import numpy as np

from keras_attention.export.batches import fit_batch
from keras_attention.export.checks.cases import Case, draw_ids, make_batches, make_cases, run_model
from keras_attention.export.generation.endpoints import UNIFORM
from keras_attention.export.generation.reference import SequenceScore
from keras_attention.export.generation.step_reader import INDEX, START, TOKENS

LENGTH = 7  # number of tokens in random prompts


class CaseMaker:
    """Makes test cases for the endpoints of a `GenerationPlan`.

    The sources of an encoder-decoder come from the examples of the plan, if there are any. Other
    inputs are random.
    """

    def __init__(self, plan, endpoints):
        self.plan, self.decoder = plan, plan.decoder
        self.points = {point.name: point for point in endpoints}
        self.random = np.random.default_rng(0)
        self._cache_names = set(self.points["step"].cache)

    def make_all(self):
        """Make all test cases.

        Returns:
            A dict from the name of each endpoint to a list of `Case`, and a list of notes about
            batches that could not be checked.
        """
        made = {name: [] for name in self.points}
        notes = []
        if "encode" in self.points:
            made["encode"], notes = self._make_encode_cases()
        for rows in self._list_batch_sizes():
            self._follow_text(made, rows)
        for name in self.plan.configs:
            made[name] = [self._make_loop_case(name, rows) for rows in self._list_batch_sizes()]
        return made, notes

    def _list_batch_sizes(self):
        """Return a list of the batch sizes to check: the fixed batch size, or else 1 and 3."""
        fixed = self.points["step"].inputs[0].shape[0]
        return [fixed] if fixed else [1, 3]

    def _make_encode_cases(self):
        sources = None
        if self.plan.examples:
            names = [tensor.name for tensor in self.points["encode"].inputs]
            sources = [{name: batch[name] for name in names} for batch in self.plan.examples]
        cases, notes = make_cases(self.decoder.encoder, self.points["encode"], sources)
        cache = self.points["encode"].cache
        return [dataclasses.replace(case, cache=cache) for case in cases], notes

    def _follow_text(self, made, rows):
        """Make cases that read a prompt and then new tokens with the cache, as an app does.

        The cases are added to the lists in `made`, a dict from the name of each endpoint to its
        list of `Case`. `rows` is the batch size.
        """
        tokens, start = self._draw_prompt(rows)
        cache = self._make_cache(rows, made)
        index = 0
        for name, length in self._list_pieces(tokens.shape[1]):
            piece = tokens if index == 0 else self._draw((rows, length))
            inputs = {TOKENS: piece, INDEX: np.int32(index), START: start, **cache}
            point = self.points[name]
            inputs = {tensor.name: inputs[tensor.name] for tensor in point.inputs}
            outputs = run_model(point, inputs)
            made[name].append(Case(inputs, outputs, cache=point.cache))
            cache |= {name: outputs[name] for name in cache.keys() & outputs.keys()}
            index += length

    def _list_pieces(self, prompt):
        """Return a list of (name of the endpoint, number of tokens) for each call of a test.

        The first call reads a whole prompt of `prompt` tokens, unless the file reads single tokens.
        All tokens fit into the cache.
        """
        if "prefill" in self.points:
            pieces = [("prefill", prompt), ("step", 1), ("step", 1)]
        elif self.points["step"].inputs[0].shape[1] == 1:
            pieces = [("step", 1), ("step", 1)]
        else:
            pieces = [("step", prompt), ("step", 1), ("step", 3)]
        ends = np.cumsum([length for _, length in pieces])
        return [p for p, end in zip(pieces, ends, strict=True) if end <= self.plan.max_length]

    def _draw_prompt(self, rows):
        """Return random prompts (B, T). The first of several prompts has left padding.

        Returns:
            The prompts, and an array (B,) with the position of the first token of each prompt. The
            array is None for an encoder-decoder.
        """
        if self.decoder.has_source:
            return self._draw((rows, 1)), None
        fixed = self.points.get("prefill", self.points["step"]).inputs[0].shape[1]
        length = fixed or min(LENGTH, max(1, self.plan.max_length - 2))
        tokens, start = self._draw((rows, length)), np.zeros(rows, "int32")
        start[0] = length // 3 if rows > 1 or fixed else 0
        tokens[np.arange(length) < start[:, None]] = self.plan.padding.filler
        return tokens, start

    def _draw(self, shape):
        size, padding = self.decoder.vocabulary_size, self.plan.padding.id
        return draw_ids(self.random, size, shape, padding)

    def _make_cache(self, rows, made):
        """Return the initial cache, a dict of arrays: the outputs of `encode`, and zeros.

        `rows` is the batch size. `made` is a dict from the name of each endpoint to its list of
        `Case`, with those of `encode`.
        """
        encoded = {}
        if "encode" in self.points:
            sizes = [len(next(iter(case.inputs.values()))) for case in made["encode"]]
            encoded = made["encode"][sizes.index(rows)].outputs
        names = self._cache_names - encoded.keys()
        zeros = [t for t in self.points["step"].inputs if t.name in names]
        return encoded | {t.name: np.zeros((rows, *t.shape[1:]), t.dtype) for t in zeros}

    def _make_loop_case(self, name, rows):
        point = self.points[name]
        names = {tensor.name for tensor in point.inputs}
        if self.decoder.has_source:
            encode = self.points["encode"]
            inputs = fit_batch(make_batches(self.decoder.encoder, encode)[0], encode, rows)
        else:
            inputs = dict(zip((TOKENS, START), self._draw_short_prompt(rows), strict=True))
            inputs = {name: x for name, x in inputs.items() if name in names}
        if UNIFORM in names:
            shape = (rows, self.plan.max_new_tokens)
            inputs[UNIFORM] = self.random.integers(0, 1 << 23, shape).astype("float32") / (1 << 23)
        score = SequenceScore(self.plan, name, inputs)
        return Case(inputs, {}, score=score)

    def _draw_short_prompt(self, rows):
        """Return random prompts that leave room for all new tokens in the cache.

        The result has the form of that of `_draw_prompt`.
        """
        tokens, start = self._draw_prompt(rows)
        if "prefill" in self.points:
            return tokens, start
        most = max(1, self.plan.max_length - self.plan.max_new_tokens + 1)
        cut = max(0, tokens.shape[1] - most)
        return tokens[:, cut:], np.maximum(start - cut, 0)
