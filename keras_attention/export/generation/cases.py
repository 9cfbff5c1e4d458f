"""The cases that the endpoints of a model that generates are checked on."""

import dataclasses

import numpy as np

from keras_attention.export.batches import fit_batch
from keras_attention.export.checks.cases import Case, draw_ids, make_batches, make_cases, run_model
from keras_attention.export.generation.endpoints import UNIFORM
from keras_attention.export.generation.reference import SequenceScore
from keras_attention.export.generation.step_reader import INDEX, START, TOKENS

LENGTH = 7  # of prompts that are made up


class CaseMaker:
    """Makes cases for the endpoints of a `GenerationPlan`, from its examples or made up."""

    def __init__(self, plan, endpoints):
        self.plan, self.decoder = plan, plan.decoder
        self.points = {point.name: point for point in endpoints}
        self.random = np.random.default_rng(0)
        self._kept = set(self.points["step"].cache)

    def make_all(self):
        """dict, name of an endpoint -> its cases; and notes on what could not be checked."""
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
        """Batch sizes to check: the one that is fixed, or two."""
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
        """Cases of a text that is read through the cache: a prompt, then new tokens."""
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
        """(endpoint, number of tokens) of a walk, as many as there is room for."""
        if "prefill" in self.points:
            pieces = [("prefill", prompt), ("step", 1), ("step", 1)]
        elif self.points["step"].inputs[0].shape[1] == 1:
            pieces = [("step", 1), ("step", 1)]
        else:
            pieces = [("step", prompt), ("step", 1), ("step", 3)]
        ends = np.cumsum([length for _, length in pieces])
        return [p for p, end in zip(pieces, ends, strict=True) if end <= self.plan.max_length]

    def _draw_prompt(self, rows):
        """Prompts (B, T) with padding on the left of the first of several, and where they begin."""
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
        """Return a cache before the first token: what `encode` gives, and zeros."""
        encoded = {}
        if "encode" in self.points:
            sizes = [len(next(iter(case.inputs.values()))) for case in made["encode"]]
            encoded = made["encode"][sizes.index(rows)].outputs
        zeros = [t for t in self.points["step"].inputs if t.name in self._kept - encoded.keys()]
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
        """Prompts short enough for all new tokens to have a place, and where they begin."""
        tokens, start = self._draw_prompt(rows)
        if "prefill" in self.points:
            return tokens, start
        most = max(1, self.plan.max_length - self.plan.max_new_tokens + 1)
        cut = max(0, tokens.shape[1] - most)
        return tokens[:, cut:], np.maximum(start - cut, 0)
