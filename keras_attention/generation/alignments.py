"""What attention looked at while tokens were chosen."""

import numpy as np
from keras import ops

from keras_attention.generation import loop


def of(request, ids):
    """{layer path: weights (B, N, limit, S)}, or (B, R, N, limit, S) for ids (B, R, limit).

    The decoder reads what it has written once more, all at once. Tokens after an END, which nobody
    chose, get zeros.
    """
    decoder, inputs = request.decoder, request.inputs
    number = ids.shape[-1]
    flat = ids.reshape(-1, number)
    rows = np.repeat(np.arange(len(ids)), len(flat) // len(ids))
    prompt = ops.convert_to_numpy(inputs["prompt"])[rows]
    tokens = np.concatenate([prompt, flat[:, :-1]], axis=1)
    cache = decoder.reorder(loop.first_cache(decoder, inputs), ops.convert_to_tensor(rows))
    with decoder.recording() as maps:
        decoder.step(ops.convert_to_tensor(tokens), cache, 0)
    chosen = ~_after_end(flat, request.rules.end_ids)[:, None, :, None]
    return {
        path: (_last(weights, number) * chosen).reshape(
            *ids.shape[:-1], *weights.shape[1:2], number, -1
        )
        for path, weights in maps.items()
    }


def _last(weights, number):
    """The weights (B, N, number, S) of the last queries, as NumPy."""
    return ops.convert_to_numpy(ops.cast(weights, "float32"))[:, :, -number:]


def _after_end(ids, end_ids):
    """Which places stand after an END, bool like ids."""
    ends = np.isin(ids, end_ids)
    return np.cumsum(ends, axis=-1) - ends > 0
