"""JAX's attention function: cuDNN's flash attention on GPUs, Splash attention on TPUs."""

import jax
import jax.numpy as jnp
from keras import ops

from keras_attention.attention.kernels.dense import repeat_heads
from keras_attention.core import keras_internals


def has_flash(dtype, size):
    """Return whether cuDNN's flash attention can run here for heads of this dtype and size."""
    if jax.default_backend() != "gpu":
        return False
    heads = jax.ShapeDtypeStruct((1, 8, 1, size), dtype)
    return keras_internals.can_use_flash_attention(heads, heads, heads)


def simplify(visible):
    """Return a `VisibleKeys` that JAX accepts, or None if JAX needs a mask tensor.

    `visible` has no mask tensor, but may have a window, lengths and `is_causal`.
    """
    if jax.default_backend() == "tpu":
        return None if visible.key_lengths is not None or visible.window is not None else visible
    if visible.window is None:
        return visible
    if visible.lengths_are_implied:  # cuDNN does not accept a window together with lengths
        return visible.without_lengths()
    return visible if visible.key_lengths is None else None


def attend(query, key, value, visible, flash_attention):
    """Compute attention to the keys that `visible`, a `VisibleKeys`, describes.

    query is (B, T, N, H), key and value are (B, S, K, H), and the output is (B, T, N, H).
    `flash_attention` is True to require flash attention, False to exclude it, or None.
    """
    mask = visible.mask
    if mask is not None:  # the axes of batch and heads may stay 1
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], query.shape[1], key.shape[1]))
    if jax.default_backend() == "tpu":
        return ops.dot_product_attention(
            query,
            repeat_heads(key, query.shape[2]),
            repeat_heads(value, query.shape[2]),
            mask=mask,
            scale=1.0,
            is_causal=visible.is_causal,
            flash_attention=flash_attention,
        )
    return jax.nn.dot_product_attention(
        query,
        key,
        value,
        mask=mask,
        scale=1.0,
        is_causal=visible.is_causal,
        query_seq_lengths=visible.query_lengths,
        key_value_seq_lengths=visible.key_lengths,
        local_window_size=None if visible.window is None else (visible.window, 0),
        implementation="cudnn" if _takes_flash(query, key, mask, flash_attention) else "xla",
    )


def _takes_flash(query, key, mask, flash_attention):
    if flash_attention is False:
        return False
    if flash_attention:
        keras_internals.can_use_flash_attention(query, key, key, raise_error=True)
        return True
    if mask is not None and (query.shape[1] % 2 or key.shape[1] % 2):
        return False  # the gradient with a mask tensor needs even lengths
    return has_flash(query.dtype, query.shape[3])
