"""Attention weights of generated tokens, computed in one call after all tokens are chosen."""

import numpy as np
from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.generation import loop


def compute_alignments(inputs, ids):
    """Return the attention weights of new tokens, a dict {layer path: weights}.

    The function calls the model once more. For new tokens `ids` (B, limit) the weights are (B, N,
    limit, S). For ids (B, R, limit), R results of each prompt, they are (B, R, N, limit, S). Tokens
    after an end token have weights of zero. `inputs` is the `GenerationInputs` of the tokens.
    """
    cache = _make_cache(inputs, ids)
    with inputs.decoder.recording() as maps:
        _read_tokens(inputs, ids, cache)
    return {path: _select_chosen(inputs, ids, weights) for path, weights in maps.items()}


def find_recording(decoder):
    """Return the `Recording` of an enclosing `record_attention` block for `decoder`, else None."""
    recording = scope.current(scope.Recording)
    if recording is None or decoder.model is None:
        return None
    if recording.layers is None:
        return recording
    models = [model for model in (decoder.encoder, decoder.decoder) if model is not None]
    layers = (layer for model in models for layer in keras_internals.all_layers(model))
    return recording if any(id(layer) in recording.layers for layer in layers) else None


def record_alignments(inputs, ids, recording):
    """Add the attention weights of the new tokens `ids` and of the encoder to a `Recording`.

    `inputs` is the `GenerationInputs` of the tokens, the checked arguments of `generate`.
    `recording` is the `Recording`, which collects weights.
    """
    with _LayerWeights() as encoder:
        cache = _make_cache(inputs, ids)
    for layer, weights in encoder.records:
        recording.record(layer, weights)
    with _LayerWeights() as decoder:
        _read_tokens(inputs, ids, cache)
    for layer, weights in decoder.records:
        recording.record(layer, ops.convert_to_tensor(_select_chosen(inputs, ids, weights)))


class _LayerWeights(scope.Recording):
    """Collects (layer, weights) from all layers, except while a source is stored in the cache."""

    def __init__(self):
        super().__init__()
        self.records = []

    def record(self, layer, weights):
        decoding = scope.current(scope.Decoding)
        if decoding is None or not decoding.encoding:
            self.records.append((layer, weights))


def _flatten_rows(ids):
    """Return ids (B, limit) or (B, R, limit) as a matrix, and the index of each row's prompt."""
    flat = ids.reshape(-1, ids.shape[-1])
    return flat, np.repeat(np.arange(len(ids)), len(flat) // len(ids))


def _make_cache(inputs, ids):
    """Return the cache before the first token, with one row for each row of ids."""
    decoder, (_, rows) = inputs.decoder, _flatten_rows(ids)
    cache = loop.make_first_cache(decoder, inputs.tensors)
    return decoder.reorder(cache, ops.convert_to_tensor(rows))


def _read_tokens(inputs, ids, cache):
    """Run the decoder on the prompt and all new tokens except the last, in one call.

    `inputs` is the `GenerationInputs`, `ids` are the new tokens, and `cache` is a dict of tensors.
    """
    flat, rows = _flatten_rows(ids)
    prompt = ops.convert_to_numpy(inputs.tensors["prompt"])[rows]
    tokens = np.concatenate([prompt, flat[:, :-1]], axis=1)
    inputs.decoder.step(ops.convert_to_tensor(tokens), cache, 0)


def _select_chosen(inputs, ids, weights):
    """Return the part of `weights` (B · R, N, T, S) that belongs to the steps of new tokens.

    The result is (B, N, limit, S), or (B, R, N, limit, S) for ids (B, R, limit).
    """
    number = ids.shape[-1]
    ends = np.isin(_flatten_rows(ids)[0], inputs.config.end_token_ids)
    after_end = np.cumsum(ends, axis=-1) - ends > 0
    last = ops.convert_to_numpy(ops.cast(weights, "float32"))[:, :, -number:]
    shape = (*ids.shape[:-1], *weights.shape[1:2], number, -1)
    return (last * ~after_end[:, None, :, None]).reshape(shape)
