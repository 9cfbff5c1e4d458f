"""The backend's own attention: flash attention on GPUs, where there is one."""

import keras
from keras import ops

from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.bias_and_mask import WholeAxis
from keras_attention.normalizers import Softmax


def refuses(case):
    """Why it cannot compute `case`, or None."""
    if keras.backend.backend() not in ("jax", "torch"):
        return f"{keras.backend.backend()} has no attention of its own"
    if case.weights:
        return "the weights are asked for, which only dense holds"
    if case.dropout:
        return "dropout on the weights is active, which only dense applies"
    if case.score.fold is None:
        return f"{case.score} is no dot product"
    if case.normalizer != Softmax(temperature=getattr(case.normalizer, "temperature", 1.0)):
        return f"{case.normalizer} is not the softmax that backends have"
    if case.biased:
        return "scores have a bias, which not every backend's attention takes"
    return None


def fused(
    query, key, value, *, score, normalizer, bias_and_mask, dropout=None, flash_attention=None
):
    """As `dense`, by `keras.ops.dot_product_attention` (Dao et al., 2022, on GPUs).

    Args:
        flash_attention: bool, whether flash attention has to be taken, or None where it can.
    """
    query, key, scale = score.fold(query, key)
    query = ops.multiply(query, ops.cast(scale / normalizer.temperature, query.dtype))
    rows, columns = WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[1])
    is_causal = bias_and_mask.is_causal()  # flash attention needs no mask tensor for it
    mask = seen = None
    if not is_causal:
        _, mask = bias_and_mask.block(rows, columns, query, key)
    if mask is not None:
        seen = ops.any(mask, axis=3, keepdims=True)  # (B or 1, N or 1, T or 1, 1)
        mask = ops.logical_or(mask, ops.logical_not(seen))  # no row is empty, which gives NaN
        shape = (ops.shape(query)[0], query.shape[2], rows.size, columns.size)
        mask = ops.broadcast_to(mask, shape)
    heads, size = query.shape[2], max(query.shape[3], value.shape[3])
    output = ops.dot_product_attention(
        _widen(query, size),
        _widen(dense.repeat_heads(key, heads), size),
        _widen(dense.repeat_heads(value, heads), size),
        mask=mask,
        scale=1.0,
        is_causal=is_causal,
        flash_attention=flash_attention,
    )
    output = output[..., : value.shape[3]]
    if seen is not None:
        output = ops.multiply(output, ops.cast(ops.transpose(seen, (0, 2, 1, 3)), output.dtype))
    return output, None


def _widen(x, size):
    """Pads heads with zeros to `size`, which change no score: JAX takes heads of one size only."""
    more = size - x.shape[3]
    return ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, more)]) if more else x
