"""What the attention of GPUs is handed: read from programs lowered for CUDA, on any machine."""

import dataclasses
import re

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="lowers JAX programs")
on_torch = pytest.mark.skipif(keras.backend.backend() != "torch", reason="calls PyTorch's kernels")
not_on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="TensorFlow has no attention of its own"
)

B, T, N, K, H = 3, 80, 4, 2, 16
CAUSAL, WINDOW = ka.masks.Causal(), ka.masks.Causal() & ka.masks.Window(8)
SIZE = dict(num_layers=1, num_heads=N, num_key_value_heads=K, hidden_dim=64, intermediate_dim=32)


@pytest.fixture
def gpu(monkeypatch):
    """As if there were one: JAX's checks of the device and of cuDNN pass, and nothing else."""
    import jax
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def lower(function, *shapes):
    """The StableHLO of `function` and its gradient for CUDA."""
    import jax

    both = jax.value_and_grad(lambda *x: ops.sum(ops.cast(function(*x), "float32")), (0, 1, 2))
    return jax.jit(both).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()


def calls(program):
    """Each call of cuDNN: its name, its kind of mask, its window, and how many heads keys have."""
    found = []
    for line in program.splitlines():
        name = re.search(r"__cudnn\$(\w+)", line)
        if name is None:
            continue
        line = line.replace("\\22", '"')
        kind = re.search(r'"mask_type": "(\w+)"', line).group(1)
        window = int(re.search(r'"sliding_window_length": (\d+)', line).group(1))
        keys = re.search(r"\(tensor<\S+>, tensor<\d+x\d+x(\d+)x\d+xbf16>", line).group(1)
        found.append((name.group(1), kind, window, int(keys)))
    return found


def heads(dtype="bfloat16", length=T):
    import jax

    return [jax.ShapeDtypeStruct((B, length, n, H), dtype) for n in (N, K, K)]


def attend(lengths=None, same=True, **terms):
    def function(query, key, value):
        given = {}
        if lengths is not None:
            keys = ops.convert_to_tensor(lengths)
            queries = keys if same else ops.minimum(keys, T)  # another tensor
            given = {"key_lengths": keys, "query_lengths": queries}
        return ka.attention.attend(query, key, value, return_weights=False, **terms, **given)

    return function


LENGTHS = np.array([T, 17, 0], "int32")


@on_jax
@pytest.mark.parametrize(
    "terms, kind, window",
    [
        ({}, "NO_MASK", 0),
        ({"mask": CAUSAL}, "CAUSAL", 0),
        ({"mask": WINDOW}, "CAUSAL", 8),
        ({"mask": ka.masks.Window(20) & WINDOW & ka.masks.Full()}, "CAUSAL", 8),
        ({"lengths": LENGTHS}, "PADDING", 0),
        ({"mask": CAUSAL, "lengths": LENGTHS}, "PADDING_CAUSAL", 0),
        ({"mask": CAUSAL, "lengths": LENGTHS, "same": False}, "PADDING_CAUSAL", 0),
        ({"mask": WINDOW, "lengths": LENGTHS}, "CAUSAL", 8),
    ],
    ids=str,
)
def test_masks_that_are_numbers_are_no_bias(gpu, terms, kind, window):
    """Keys keep their K heads, and no tensor is as large as the scores."""
    program = lower(attend(**terms), *heads())
    assert calls(program) == [
        ("fmhaSoftmax", kind, window, K),
        ("fmhaSoftmaxBackward", kind, window, K),
    ]
    assert f"{T}x{T}x" not in program


@on_jax
@pytest.mark.parametrize(
    "terms",
    [
        {"mask": ka.masks.Causal() & ka.masks.Strided(3)},
        {"mask": ka.masks.Causal() | ka.masks.Prefix(2)},
        {"attention_mask": np.tri(T, dtype="bool")},
        {"mask": CAUSAL, "attention_mask": np.arange(T)[None] > LENGTHS[:, None, None, None]},
        {"mask": CAUSAL, "query_positions": np.arange(3, T + 3)},
    ],
    ids=str,
)
def test_other_masks_are_a_bias_for_all_heads(gpu, terms):
    program = lower(attend(**terms), *heads())
    names = [name for name, *_ in calls(program)]
    assert names == ["fmhaScaleBiasSoftmax", "fmhaScaleBiasSoftmaxBackward"]
    assert f"x{N}x{T}x{T}xbf16>) ->" not in program
    assert re.search(rf"tensor<[1{B}]x1x{T}x{T}xbf16>", program)


@on_jax
@pytest.mark.parametrize(
    "terms", [{"mask": WINDOW, "lengths": LENGTHS, "same": False}, {"mask": ka.masks.Window(4)}]
)
def test_windows_that_are_no_numbers_compute_the_band_alone(gpu, terms):
    """Where lengths of queries and keys may differ, and where a query sees what comes after it."""
    program = lower(attend(**terms), *heads(length=256))
    assert "__cudnn" not in program and "256x256x" not in program


@on_jax
def test_flash_attention_is_skipped_when_unsupported_or_disabled(gpu):
    assert "__cudnn" not in lower(attend(mask=CAUSAL), *heads("float32"))
    assert "__cudnn" not in lower(attend(mask="causal", position="alibi"), *heads())
    assert "__cudnn" not in lower(attend(mask=CAUSAL, flash_attention=False), *heads())
    with pytest.raises(NotImplementedError, match="fp16/bf16"):
        lower(attend(mask=CAUSAL, flash_attention=True), *heads("float32"))


@on_jax
def test_odd_lengths_beside_a_mask_tensor(gpu):
    """cuDNN has no gradient for them."""
    program = lower(attend(mask=ka.masks.Causal() | ka.masks.Prefix(2)), *heads(length=63))
    assert "__cudnn" not in program


@on_jax
def test_the_choice_says_that_flash_attention_takes_the_window(gpu):
    layer = ka.attention.MultiHeadAttention(N, H, mask=WINDOW, dtype="bfloat16")
    assert ka.attention.explain(layer, 256).implementation == "fused"
    assert ka.attention.explain(layer, 256, positions=True).implementation == "fused"
    layer = ka.attention.MultiHeadAttention(N, H, mask=WINDOW)
    assert ka.attention.explain(layer, 256).implementation == "banded"  # float32


@on_jax
@pytest.mark.parametrize(
    "builder, mask, padding, name, kind",
    [
        ("causal_language_model", None, None, "fmhaScaleBiasSoftmax", "NO_MASK"),
        ("causal_language_model", None, "none", "fmhaSoftmax", "CAUSAL"),
        ("causal_language_model", None, "right", "fmhaSoftmax", "PADDING_CAUSAL"),
        ("causal_language_model", ka.masks.Window(8), "right", "fmhaSoftmax", "CAUSAL"),
        ("text_encoder", None, "none", "fmhaSoftmax", "NO_MASK"),
        ("text_encoder", None, "right", "fmhaSoftmax", "PADDING"),
    ],
)
def test_models_that_promise_padding_hand_it_over(gpu, builder, mask, padding, name, kind):
    import jax

    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = getattr(ka.models, builder)(30, mask=mask, padding=padding, **SIZE)
    finally:
        keras.config.set_dtype_policy("float32")
    weights = [x.value for x in model.trainable_variables]
    others = [x.value for x in model.non_trainable_variables]

    def loss(weights, ids):
        outputs, _ = model.stateless_call(weights, others, ids)
        return ops.sum(ops.cast(outputs, "float32"))

    ids = jax.ShapeDtypeStruct((B, T), "int32")
    program = jax.jit(jax.grad(loss)).trace(weights, ids)
    program = program.lower(lowering_platforms=("cuda",)).as_text()
    window = 0 if mask is None else 8
    assert calls(program) == [(name, kind, window, K), (f"{name}Backward", kind, window, K)]
    assert (f"{T}x{T}x" in program) == (padding is None)


def values(dtype="float32"):
    random = np.random.default_rng(0)
    return [ops.cast(random.normal(size=(B, T, n, H)), dtype) for n in (N, K, K)]


@not_on_tensorflow
@pytest.mark.parametrize("mask", [None, CAUSAL, WINDOW, ka.masks.Window(5)], ids=str)
@pytest.mark.parametrize("same", [True, False])
def test_lengths_are_the_mask_of_padding(mask, same):
    """Padded queries give zeros, and a row of padding alone too."""
    found = attend(lengths=LENGTHS, same=same, mask=mask, implementation="fused")(*values())
    tokens = np.arange(T)[None] < LENGTHS[:, None]
    expected = ka.attention.attend(
        *values(),
        mask=mask,
        attention_mask=tokens[:, None, None],
        query_mask=tokens,
        return_weights=False,
        implementation="dense",
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=2e-6
    )
    assert np.all(ops.convert_to_numpy(found)[~tokens] == 0)


def test_lengths_alone_hide_padding_from_every_kernel():
    given = {"query_lengths": LENGTHS, "key_lengths": LENGTHS, "mask": WINDOW}
    dense, _ = ka.attention.attend(*values(), **given)
    for implementation in ("banded", "chunked"):
        found = ka.attention.attend(
            *values(), **given, return_weights=False, implementation=implementation
        )
        np.testing.assert_allclose(
            ops.convert_to_numpy(found), ops.convert_to_numpy(dense), atol=2e-6
        )
    assert np.all(ops.convert_to_numpy(dense)[2] == 0)


def test_a_layer_that_changes_the_mask_gives_up_the_lengths():
    class Hiding(ka.attention.MultiHeadAttention):
        def attend_heads(self, query, heads, call, **parts):
            first = ops.reshape(ops.arange(T) > 0, (1, 1, 1, T))
            mask = ops.logical_and(call.attention_mask, first)
            call = dataclasses.replace(call, attention_mask=mask)
            return super().attend_heads(query, heads, call, **parts)

    x = ops.convert_to_tensor(np.random.default_rng(0).normal(size=(B, T, 8)).astype("float32"))
    tokens = ops.convert_to_tensor(np.arange(T)[None] < LENGTHS[:, None])
    layer = Hiding(2, 4, padding="right")
    found = layer(x, x, query_mask=tokens, value_mask=tokens)
    expected, weights = layer(
        x, x, query_mask=tokens, value_mask=tokens, return_attention_scores=True
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=1e-5
    )
    assert np.all(ops.convert_to_numpy(weights)[..., 0] == 0)


@pytest.fixture
def handed(monkeypatch):
    """What PyTorch's attention is called with."""
    import torch

    found, attention = [], torch.nn.functional.scaled_dot_product_attention

    def listening(query, key, value, **given):
        found.append({"heads": key.shape[1], **given})
        return attention(query, key, value, **given)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", listening)
    return found


@on_torch
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
    import torch

    attend(**terms)(*values("bfloat16"))
    (call,) = handed
    mask = call["attn_mask"]
    assert call["is_causal"] == causal and call["enable_gqa"] and call["heads"] == K
    assert (None if mask is None else tuple(mask.shape)) == shape
    assert mask is None or mask.dtype == torch.bool


@on_torch
def test_on_cuda_heads_are_repeated_where_only_the_slow_kernel_groups_them():
    import torch

    from keras_attention.attention.kernels import fused_torch

    class Heads:
        device = torch.device("cuda")
        dtype = torch.bfloat16

    assert fused_torch._takes_groups(Heads, None) and not fused_torch._takes_groups(Heads, "mask")
    Heads.dtype = torch.float32
    assert not fused_torch._takes_groups(Heads, None)


@on_torch
@pytest.mark.parametrize("terms", [{}, {"mask": CAUSAL}, {"lengths": LENGTHS}], ids=str)
def test_pytorchs_fused_kernel_takes_what_it_is_handed(terms):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        found = attend(**terms)(*values())
    expected = attend(**terms, implementation="dense")(*values())
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=2e-6
    )
