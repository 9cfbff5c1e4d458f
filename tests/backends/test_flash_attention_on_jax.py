"""Programs that JAX lowers for CUDA call cuDNN's attention. The tests read them on any machine."""

import re

import jax
import keras
import numpy as np
import pytest
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from keras import ops

import keras_attention as ka
from keras_attention.attention import kernels
from tests.backends.attention_cases import CAUSAL, LENGTHS, WINDOW, B, H, K, N, T, attend
from tests.stacks import make_writer

SIZE = dict(num_layers=1, num_heads=N, num_key_value_heads=K, hidden_dim=64, intermediate_dim=32)


@pytest.fixture
def gpu(monkeypatch):
    """Let JAX's checks of the device and of cuDNN pass, as on a GPU."""
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def lower(function, *shapes):
    """Return the StableHLO of `function` and its gradient for CUDA."""
    compute = jax.value_and_grad(lambda *x: ops.sum(ops.cast(function(*x), "float32")), (0, 1, 2))
    return jax.jit(compute).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()


def calls(program):
    """Return each call of cuDNN: name, kind of mask, window, and number of key heads."""
    cudnn_calls = []
    for line in program.splitlines():
        name = re.search(r"__cudnn\$(\w+)", line)
        if name is None:
            continue
        line = line.replace("\\22", '"')
        kind = re.search(r'"mask_type": "(\w+)"', line).group(1)
        window = int(re.search(r'"sliding_window_length": (\d+)', line).group(1))
        keys = re.search(r"\(tensor<\S+>, tensor<\d+x\d+x(\d+)x\d+xbf16>", line).group(1)
        cudnn_calls.append((name.group(1), kind, window, int(keys)))
    return cudnn_calls


def heads(dtype="bfloat16", length=T):
    return [jax.ShapeDtypeStruct((B, length, n, H), dtype) for n in (N, K, K)]


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


@pytest.mark.parametrize(
    "terms", [{"mask": WINDOW, "lengths": LENGTHS, "same": False}, {"mask": ka.masks.Window(4)}]
)
def test_windows_that_are_no_numbers_compute_the_band_alone(gpu, terms):
    """Check masks that see later keys, and different lengths of queries and keys."""
    program = lower(attend(**terms), *heads(length=256))
    assert "__cudnn" not in program and "256x256x" not in program


def test_flash_attention_is_skipped_when_unsupported_or_disabled(gpu):
    assert "__cudnn" not in lower(attend(mask=CAUSAL), *heads("float32"))
    assert "__cudnn" not in lower(attend(mask="causal", position="alibi"), *heads())
    assert "__cudnn" not in lower(attend(mask=CAUSAL, flash_attention=False), *heads())
    with pytest.raises(NotImplementedError, match="fp16/bf16"):
        lower(attend(mask=CAUSAL, flash_attention=True), *heads("float32"))


def test_odd_lengths_beside_a_mask_tensor(gpu):
    """cuDNN has no gradient for them."""
    program = lower(attend(mask=ka.masks.Causal() | ka.masks.Prefix(2)), *heads(length=63))
    assert "__cudnn" not in program


def test_the_choice_says_that_flash_attention_takes_the_window(gpu):
    layer = ka.attention.MultiHeadAttention(N, H, mask=WINDOW, dtype="bfloat16")
    assert ka.attention.explain(layer, 256).implementation == "fused"
    assert ka.attention.explain(layer, 256, positions=True).implementation == "fused"
    layer = ka.attention.MultiHeadAttention(N, H, mask=WINDOW)
    assert ka.attention.explain(layer, 256).implementation == "banded"  # float32


LONG = 256
MASKS = {  # flags of `explain`, and shapes of the arguments of a call
    "none": ({}, {}),
    "padding": ({"padding": True}, {"query_mask": (B, LONG), "value_mask": (B, LONG)}),
    "attention mask": ({"attention_mask": True}, {"attention_mask": (B, LONG, LONG)}),
    "segments": ({"attention_mask": True}, {"segment_ids": (B, LONG)}),
}


@pytest.mark.parametrize("side", [None, "right"])
@pytest.mark.parametrize("keys", ["self", "cross"])
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize(
    "make",
    [
        lambda **kwargs: ka.attention.MultiHeadAttention(N, H, **kwargs),
        lambda **kwargs: ka.attention.LatentAttention(N, 8, 4, 4, **kwargs),  # heads of size 12
    ],
    ids=["multi_head", "latent"],
)
def test_explain_agrees_with_calls_with_windows_and_masks(
    gpu, monkeypatch, make, masks, keys, side
):
    """Compare the choices, and let `dense` compute."""
    choices, choose = [], kernels.choose

    def record(*arguments):
        choices.append(choose(*arguments))
        return kernels.Choice("dense", "this machine has no GPU")

    monkeypatch.setattr(kernels, "choose", record)
    flags, shapes = MASKS[masks]
    arguments = {name: ops.ones(shape, "bool") for name, shape in shapes.items()}
    if masks == "padding" and keys == "self":
        arguments["value_mask"] = arguments["query_mask"]
    x = ops.ones((B, LONG, 8))
    value = x if keys == "self" else ops.ones((B, LONG, 8))
    layer = make(mask=WINDOW, dtype="bfloat16", padding=side)
    layer(x, value, **arguments)
    key_length = None if keys == "self" else LONG
    assert choices == [ka.attention.explain(layer, LONG, key_length, **flags)]


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
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        embedding = ka.models.TextEmbedding(padding=padding)
        if builder == "causal_language_model":
            promised = "right" if padding == "right" else None
            model = make_writer(30, mask=mask, padding=promised, embedding=embedding, **SIZE)
        else:
            attention = ka.attention.MultiHeadAttention(
                N,
                64 // N,
                num_key_value_heads=K,
                position="rotary",
                padding="right" if padding == "right" else None,
            )
            model = ka.models.text_encoder(
                30,
                hidden_dim=64,
                embedding=embedding,
                encoder=ka.models.TransformerEncoder(
                    1, attention=attention, feed_forward=ka.blocks.FeedForward(32), dropout=0.1
                ),
            )
    finally:
        keras.config.set_dtype_policy("float32")
    weights = [x.value for x in model.trainable_variables]
    state = [x.value for x in model.non_trainable_variables]

    def loss(weights, ids):
        outputs, _ = model.stateless_call(weights, state, ids)
        return ops.sum(ops.cast(outputs, "float32"))

    ids = jax.ShapeDtypeStruct((B, T), "int32")
    program = jax.jit(jax.grad(loss)).trace(weights, ids)
    program = program.lower(lowering_platforms=("cuda",)).as_text()
    window = 0 if mask is None else 8
    assert calls(program) == [(name, kind, window, K), (f"{name}Backward", kind, window, K)]
    assert (f"{T}x{T}x" in program) == (padding is None)
