"""JAX's attention, which is cuDNN's flash attention on GPUs and Splash attention on TPUs."""

import jax
import jax.numpy as jnp
from keras import ops

from keras_attention.attention.kernels.dense import repeat_heads
from keras_attention.core import keras_internals


def has_flash(dtype, size):
    """Return whether cuDNN's flash attention runs here, for heads of this size and dtype."""
    if jax.default_backend() != "gpu":
        return False
    heads = jax.ShapeDtypeStruct((1, 8, 1, size), dtype)
    return keras_internals.can_use_flash_attention(heads, heads, heads)


def simplify(visible):
    """Return `visible` as it is handed over, or None where it has to become a tensor."""
    if jax.default_backend() == "tpu":
        return None if visible.key_lengths is not None or visible.window is not None else visible
    if visible.window is None:
        return visible
    if visible.lengths_are_implied:  # cuDNN takes no window beside lengths
        return visible.without_lengths()
    return visible if visible.key_lengths is None else None


def attend(query, key, value, visible, flash_attention):
    """Return (B, T, N, H) of heads (B, T, N, H) and twice (B, S, K, H), as `VisibleKeys` say."""
    mask = visible.mask
    if mask is not None:  # heads and batch may stay one
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
        return False  # the gradient beside a mask tensor is of even lengths alone
    return has_flash(query.dtype, query.shape[3])
