"""The signatures that the engine LiteRT-LM calls: `prefill_N` and `decode`.

The engine reads a prompt in pieces of N tokens, and generates one token at a time. It fills up a
piece that is shorter with token 0 at position 0, and writes the new cache over the old one. Keys
and values of such padding lie behind the last token. No token attends to them, because each may
only attend to earlier positions, and the next tokens overwrite them.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import scope
from keras_attention.export.checks.cases import Case, draw_ids, run_model
from keras_attention.export.checks.report import Tensor
from keras_attention.export.endpoint import Endpoint
from keras_attention.export.errors import ExportError
from keras_attention.export.exportable import CheckedEndpoint, Exportable
from keras_attention.export.generation.reference import compute_logits
from keras_attention.export.precision import (
    check_stateless,
    convert_to_float32,
    list_reduced_policies,
)
from keras_attention.generation.cache import cache_shapes, check_max_length
from keras_attention.generation.decoder import Decoder

TOKENS, POSITIONS, LOGITS = "tokens", "input_pos", "logits"  # names of the engine
PIECE = 128  # default number of prompt tokens in a call
TOLERANCE = 1e-4  # for logits with a cache, relative to the largest logit (or 1 if it is smaller)


def make_engine_exportable(model, max_length, prefill_length):
    """Return the `Exportable` of a language model: the model with its signatures and test cases.

    Args:
        model: functional `keras.Model` from token ids (B, T) to logits (B, T, V).
        max_length: int, the maximum number of tokens, prompt and new tokens. None uses the number
            of positions of the model, or 1,024 if it has no limit or a higher one.
        prefill_length: int, the number of prompt tokens in a call. None uses at most 128.

    Raises:
        ValueError: the model is not a decoder that the engine can run.
        ExportError: the model gives other logits with the cache than without it.
    """
    check_stateless(model)
    exported = convert_to_float32(model)
    reader = EngineReader(Decoder(exported), max_length, prefill_length)
    cases = reader.make_cases()
    checked = tuple(CheckedEndpoint(point, cases[point.name]) for point in reader.endpoints)
    warnings = []
    if exported is not model:
        policies = ", ".join(list_reduced_policies(model))
        warnings = [f"exported in float32. The model computes in {policies}"]
    return Exportable(exported, checked, warnings), reader


class EngineReader:
    """Runs a decoder as the engine does, with the endpoints `prefill_N` and `decode`.

    Args:
        decoder: `Decoder` of a language model.
        max_length, prefill_length: the arguments of `make_engine_exportable`.

    Attributes:
        max_length, prefill_length: int, the lengths that replace None.
        endpoints: tuple of two `Endpoint`s.
    """

    def __init__(self, decoder, max_length, prefill_length):
        self.decoder = decoder
        self.max_length = _choose_max_length(decoder, max_length)
        self.prefill_length = min(prefill_length or PIECE, self.max_length)
        _check_decoder(decoder, self.max_length)
        # The padding of the last piece of the longest prompt must fit, too.
        self._layout = _name_cache(decoder, self.max_length + self.prefill_length - 1)
        prefill = self._make_endpoint(f"prefill_{self.prefill_length}", self.prefill_length)
        self.endpoints = prefill, self._make_endpoint("decode", 1)

    def _make_endpoint(self, name, length):
        """Return the endpoint `name`, which reads `length` tokens.

        Only `decode` returns logits, because the engine refuses other outputs of `prefill_N`.
        """
        stored = {model: entry for model, entry in self._layout.items() if entry[0]}
        # The engine finds the length of the cache in the third axis, and stops too early if the
        # last axis is the third.
        cache = tuple(
            Tensor(own, (1, *shape) if len(shape) > 2 else (1, 1, *shape), dtype)
            for own, shape, dtype in stored.values()
        )
        inputs = (Tensor(TOKENS, (1, length), "int32"), Tensor(POSITIONS, (length,), "int32"))
        names = tuple(tensor.name for tensor in cache)
        outputs = (LOGITS, *names) if name == "decode" else names

        def call(tensors):
            before = {
                model: _reshape(tensors[own], (1, *shape))
                for model, (own, shape, _) in stored.items()
            }
            logits, after = self._step(tensors[TOKENS], before, tensors[POSITIONS][0])
            after = {own: after[model] for model, (own, _, _) in stored.items()}
            after = {t.name: _reshape(after[t.name], t.shape) for t in cache}
            return after | ({LOGITS: logits} if LOGITS in outputs else {})

        all_inputs = (*inputs, *cache)
        return Endpoint(name, all_inputs, {t.name: () for t in all_inputs}, outputs, call, names)

    def _step(self, tokens, cache, index):
        """Return the logits (1, T, V) of tokens (1, T), and the new cache.

        `cache` is a dict of tensors with the names of the model. `index` is the position of the
        first token.
        """
        model = self.decoder.model
        # The engine never reads padding before other tokens. It refuses a state of two axes.
        masks = {n: shape for n, (own, shape, _) in self._layout.items() if own is None}
        cache = cache | {n: ops.ones((1, *shape), dtype="bool") for n, shape in masks.items()}
        with PaddedDecoding(cache, index, last=self.max_length - 1) as decoding:
            inputs = keras.tree.pack_sequence_as(model.input, [tokens])
            logits = model(inputs, training=False)
        return ops.cast(logits, "float32"), decoding.cache

    def make_cases(self):
        """Return a dict from the name of each endpoint to its test cases, and check the cache.

        A random text is read as the engine reads it: a whole piece, a piece with padding, and
        single tokens.

        Raises:
            ExportError: the logits are not those of the model for the whole text.
        """
        prefill, decode = self.endpoints
        made, whole = {prefill.name: [], decode.name: []}, self.prefill_length
        lengths = [whole, max(1, whole // 2)]
        if sum(lengths) + 2 > self.max_length:
            lengths = [max(1, min(whole, self.max_length - 2))]
        total = min(self.max_length, sum(lengths) + 2)
        random, padding = np.random.default_rng(0), self.decoder.padding.id
        tokens = draw_ids(random, self.decoder.vocabulary_size, (1, total), padding)
        empty = [tensor for tensor in decode.inputs if tensor.name in decode.cache]
        cache = {tensor.name: np.zeros(tensor.shape, tensor.dtype) for tensor in empty}
        index, read = 0, {}
        for length in [*lengths, *[None] * (total - sum(lengths))]:
            point, count = (decode, 1) if length is None else (prefill, length)
            inputs = _fill_up(tokens[:, index : index + count], index, point) | cache
            outputs = run_model(point, inputs)
            made[point.name].append(Case(inputs, outputs, cache=point.cache))
            cache = {name: outputs[name] for name in cache}
            index += count
            if length is None:
                read[index - 1] = outputs[LOGITS][0, 0]
        self._check_logits(tokens, read)
        # A prompt whose last piece ends after the last position of the model.
        last = self.max_length - 1
        inputs = _fill_up(tokens[:, :1], last, prefill) | cache
        made[prefill.name].append(Case(inputs, run_model(prefill, inputs), cache=prefill.cache))
        return made

    def _check_logits(self, tokens, read):
        """Raise an ExportError if logits differ from those of the model for the whole text.

        `tokens` is the text, int (1, T), and `read` a dict from positions to logits (V,).
        """
        expected = compute_logits(self.decoder, tokens)[0]
        error = max(float(np.abs(row - expected[i]).max()) for i, row in read.items())
        allowed = TOLERANCE * max(1.0, float(np.abs(expected).max()))
        if not error <= allowed:
            raise ExportError(
                f"{self.decoder.model.name} gives other logits with a cache than for the whole "
                f"text. They differ by {error:.1e}, and {allowed:.0e} is allowed. Look for a layer "
                "that mixes tokens without a cache."
            )


class PaddedDecoding(scope.Decoding):
    """A decoding scope for pieces that end with padding, whose positions may be too high.

    Args:
        cache, index: the arguments of `Decoding`.
        last: int, the highest position. Padding that would have a higher one gets this position.
    """

    def __init__(self, cache, index, *, last):
        super().__init__(cache, index)
        self.last = last

    def positions(self, length):
        return ops.minimum(super().positions(length), self.last)


def _reshape(x, shape):
    return x if len(x.shape) == len(shape) else ops.reshape(x, shape)


def _fill_up(tokens, index, endpoint):
    """Return the inputs of an endpoint for tokens (1, n) from position `index`, as the engine does.

    The rest of a piece is token 0 at position 0. The cache is missing.
    """
    length, count = endpoint.inputs[0].shape[1], tokens.shape[1]
    positions = np.zeros(length, "int32")
    positions[:count] = index + np.arange(count)
    return {TOKENS: np.pad(tokens, ((0, 0), (0, length - count))), POSITIONS: positions}


def _choose_max_length(decoder, max_length):
    """Return the maximum number of tokens: `max_length`, or a default if it is None."""
    if max_length is None:
        return min(filter(None, (1024, decoder.max_positions)))
    check_max_length(decoder.cache_spec, max_length)
    return max_length


def _check_decoder(decoder, max_length):
    """Raise a ValueError if the engine cannot run a decoder."""
    name = decoder.model.name
    if decoder.has_source:
        raise ValueError(
            f"{name} is an encoder-decoder. LiteRT-LM runs language models, which have no encoder. "
            "Use to_litert(..., generate=...)."
        )
    if states := sorted(decoder.state_names):
        raise ValueError(
            f"{name} keeps a state, {states[0]}, which every token changes. LiteRT-LM fills up "
            "prompts with padding, which would change it, too. Use attention layers only, or "
            "to_litert(..., generate=...)."
        )
    entries = [entry for entry in decoder.cache_spec.entries.values() if entry.dtype != "bool"]
    if len(entries) < 2:
        raise ValueError(
            f"{name} stores a single tensor, but LiteRT-LM needs keys and values. Expected more "
            "than one layer of this kind. Use to_litert(..., generate=...)."
        )
    least = decoder.min_prompt_length(max_length)
    if least > 1:
        raise ValueError(
            f"The first {least} tokens of {name} attend to one another (a prefix), but LiteRT-LM "
            "reads prompts in pieces. Expected a causal mask. Use to_litert(..., generate=...)."
        )


def _name_cache(decoder, length):
    """Return the cache of a decoder: {name in the model: (name in the file, shape, dtype)}.

    The engine expects names such as `kv_cache_k_0` and `kv_cache_v_0`. Shapes have no batch. All
    entries hold `length` tokens. A layer with a sliding window could hold fewer, but the padding of
    a prompt would push the newest tokens out. The name of a mask in the file is None.
    """
    entries = decoder.cache_spec.entries.items()
    whole = {key: dataclasses.replace(entry, window=None) for key, entry in entries}
    shapes = cache_shapes(dataclasses.replace(decoder.cache_spec, entries=whole), length)
    stored = [name for name, (_, dtype) in shapes.items() if dtype != "bool"]
    named = {name: f"kv_cache_{'kv'[i % 2]}_{i // 2}" for i, name in enumerate(stored)}
    return {name: (named.get(name), *shape) for name, shape in shapes.items()}
