"""PyTorch's attention: flash, memory-efficient or cuDNN's, whichever its rule picks."""

import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from keras_attention.core import keras_internals


def simplify(visible):
    """Return `visible` as it is handed over, or None where it has to become a tensor.

    PyTorch takes no lengths and no window.
    """
    if visible.window is not None:
        return None
    if visible.lengths_are_implied:
        return visible.without_lengths()
    return visible if visible.key_lengths is None else None


def attend(query, key, value, visible, flash_attention):
    """Return (B, T, N, H) of heads (B, T, N, H) and twice (B, S, K, H), as `VisibleKeys` say.

    A mask stays bool: of floats flash attention takes none, and the others read four times more.
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
    """Return whether heads that share a key stay so. On GPUs only flash attention computes so.

    It takes no mask and no float32, and the kernel that then runs forms all scores.
    """
    return query.device.type != "cuda" or (mask is None and query.dtype != torch.float32)


def _kernels(flash_attention):
    if flash_attention is None:
        return contextlib.nullcontext()
    if flash_attention:
        return sdpa_kernel([SDPBackend.FLASH_ATTENTION])
    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
