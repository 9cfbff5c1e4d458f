"""Attention weights of generated tokens, computed when all tokens are known."""

import numpy as np
from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.generation import loop


def compute_alignments(inputs, ids):
    """{layer path: weights (B, N, limit, S)}, or (B, R, N, limit, S) for ids (B, R, limit).

    The decoder reads prompt and new tokens once more, in one call. Tokens after an END get zeros.
    """
    cache = _make_cache(inputs, ids)
    with inputs.decoder.recording() as maps:
        _read_tokens(inputs, ids, cache)
    return {path: _select_chosen(inputs, ids, weights) for path, weights in maps.items()}


def find_recording(decoder):
    """Return the innermost recording scope, if it asks for layers of `decoder`; or None."""
    recording = scope.current(scope.Recording)
    if recording is None or decoder.model is None:
        return None
    if recording.layers is None:
        return recording
    models = [model for model in (decoder.encoder, decoder.decoder) if model is not None]
    layers = (layer for model in models for layer in keras_internals.all_layers(model))
    return recording if any(id(layer) in recording.layers for layer in layers) else None


def record_alignments(inputs, ids, recording):
    """Records these weights in `recording`, and those of the encoder of a source."""
    with _LayerWeights() as encoder:
        cache = _make_cache(inputs, ids)
    for layer, weights in encoder.found:
        recording.record(layer, weights)
    with _LayerWeights() as decoder:
        _read_tokens(inputs, ids, cache)
    for layer, weights in decoder.found:
        recording.record(layer, ops.convert_to_tensor(_select_chosen(inputs, ids, weights)))


class _LayerWeights(scope.Recording):
    """Collects (layer, weights) of the layers that run, but not of a call that fills a cache."""

    def __init__(self):
        super().__init__()
        self.found = []

    def record(self, layer, weights):
        decoding = scope.current(scope.Decoding)
        if decoding is None or not decoding.encoding:
            self.found.append((layer, weights))


def _flatten_rows(ids):
    """ids (B, limit) or (B, R, limit) as rows of ids, and which row of the prompt each is of."""
    flat = ids.reshape(-1, ids.shape[-1])
    return flat, np.repeat(np.arange(len(ids)), len(flat) // len(ids))


def _make_cache(inputs, ids):
    """Return the cache before the first token, for every row of results."""
    decoder, (_, rows) = inputs.decoder, _flatten_rows(ids)
    cache = loop.make_first_cache(decoder, inputs.tensors)
    return decoder.reorder(cache, ops.convert_to_tensor(rows))


def _read_tokens(inputs, ids, cache):
    """Runs the decoder on the prompt and all new tokens but the last, at once."""
    flat, rows = _flatten_rows(ids)
    prompt = ops.convert_to_numpy(inputs.tensors["prompt"])[rows]
    tokens = np.concatenate([prompt, flat[:, :-1]], axis=1)
    inputs.decoder.step(ops.convert_to_tensor(tokens), cache, 0)


def _select_chosen(inputs, ids, weights):
    """Of the weights of all queries those that chose a token, in the shape of the results."""
    number = ids.shape[-1]
    ends = np.isin(_flatten_rows(ids)[0], inputs.config.end_token_ids)
    after_end = np.cumsum(ends, axis=-1) - ends > 0
    last = ops.convert_to_numpy(ops.cast(weights, "float32"))[:, :, -number:]
    shape = (*ids.shape[:-1], *weights.shape[1:2], number, -1)
    return (last * ~after_end[:, None, :, None]).reshape(shape)
