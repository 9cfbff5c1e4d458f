"""PyTorch's attention gets a flag or a bool mask, and heads as they are."""

import numpy as np
import pytest
import torch
from keras import ops
from torch.nn.attention import SDPBackend, sdpa_kernel

import keras_attention as ka
from keras_attention.attention.kernels import fused_torch
from tests.backends.attention_cases import CAUSAL, LENGTHS, B, K, T, attend, draw_heads


@pytest.fixture
def handed(monkeypatch):
    """Return a list. Each call of PyTorch's attention adds its arguments."""
    calls, attention = [], torch.nn.functional.scaled_dot_product_attention

    def listening(query, key, value, **arguments):
        calls.append({"heads": key.shape[1], **arguments})
        return attention(query, key, value, **arguments)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", listening)
    return calls


@pytest.mark.parametrize(
    "terms, causal, shape",
    [
        ({}, False, None),
        ({"mask": CAUSAL}, True, None),
        ({"mask": CAUSAL, "lengths": LENGTHS}, True, None),
        ({"mask": CAUSAL, "lengths": LENGTHS, "same": False}, False, (B, 1, T, T)),
        ({"lengths": LENGTHS}, False, (B, 1, 1, T)),
        ({"mask": ka.masks.Causal() | ka.masks.Prefix(2)}, False, (1, 1, T, T)),
    ],
    ids=str,
)
def test_pytorch_gets_a_flag_or_a_bool_mask_and_heads_as_they_are(handed, terms, causal, shape):
    attend(**terms)(*draw_heads("bfloat16"))
    (call,) = handed
    mask = call["attn_mask"]
    assert call["is_causal"] == causal and call["enable_gqa"] and call["heads"] == K
    assert (None if mask is None else tuple(mask.shape)) == shape
    assert mask is None or mask.dtype == torch.bool


def test_on_cuda_heads_are_repeated_where_only_the_slow_kernel_groups_them():
    class Heads:
        device = torch.device("cuda")
        dtype = torch.bfloat16

    assert fused_torch.takes_groups(Heads, None) and not fused_torch.takes_groups(Heads, "mask")
    Heads.dtype = torch.float32
    assert not fused_torch.takes_groups(Heads, None)


@pytest.mark.parametrize("terms", [{}, {"mask": CAUSAL}, {"lengths": LENGTHS}], ids=str)
def test_pytorchs_fused_kernel_takes_what_it_is_handed(terms):
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        actual = attend(**terms)(*draw_heads())
    expected = attend(**terms, implementation="dense")(*draw_heads())
    np.testing.assert_allclose(
        ops.convert_to_numpy(actual), ops.convert_to_numpy(expected), atol=2e-6
    )
