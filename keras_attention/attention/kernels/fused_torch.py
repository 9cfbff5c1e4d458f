"""PyTorch's attention function, which chooses among flash, memory-efficient and cuDNN kernels."""

import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from keras_attention.core import keras_internals


def simplify(visible):
    """Return a `VisibleKeys` that PyTorch accepts, or None if PyTorch needs a mask tensor.

    `visible` has no mask tensor. PyTorch accepts neither its lengths nor its window.
    """
    if visible.window is not None:
        return None
    if visible.lengths_are_implied:
        return visible.without_lengths()
    return visible if visible.key_lengths is None else None


def attend(query, key, value, visible, flash_attention):
    """Compute attention to the keys that `visible`, a `VisibleKeys`, describes.

    query is (B, T, N, H), key and value are (B, S, K, H), and the output is (B, T, N, H).
    `flash_attention` is True to require flash attention, False to exclude it, or None. A mask is
    passed as bool, because a float mask would be four times as large.
    """
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and not takes_groups(query, visible.mask):
        key, value = (torch.repeat_interleave(x, groups, dim=1) for x in (key, value))
        groups = 1
    if flash_attention:
        keras_internals.can_use_flash_attention(
            query, key, value, visible.mask, visible.is_causal, raise_error=True
        )
    with _kernels(flash_attention):
        output = torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=visible.mask,
            is_causal=visible.is_causal,
            scale=1.0,
            enable_gqa=groups > 1,
        )
    return output.transpose(1, 2)


def takes_groups(query, mask):
    """Return whether PyTorch can compute grouped heads without copying keys and values.

    On GPUs only flash attention can, and it supports neither masks nor float32. For other cases,
    PyTorch would use a kernel that stores all scores. `query` is (B, T, N, H), and `mask` a tensor
    or None.
    """
    return query.device.type != "cuda" or (mask is None and query.dtype != torch.float32)


def _kernels(flash_attention):
    if flash_attention is None:
        return contextlib.nullcontext()
    if flash_attention:
        return sdpa_kernel([SDPBackend.FLASH_ATTENTION])
    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
