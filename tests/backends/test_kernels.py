"""On JAX and PyTorch: every kernel equals `dense`, in outputs and gradients.

TensorFlow's kernels are tested in tests/attention/test_kernels.py.
"""

import importlib

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from tests.backends import attention_cases as shared
from tests.gradients import value_and_gradients

B, N, H = 2, 4, 8
WINDOW = ka.masks.Causal() & ka.masks.Window(20)
FUSED = {
    "plain": {},
    "causal": {"mask": "causal"},
    "window": {"mask": WINDOW},
    "padding": {"padded": True},
    "rows that see nothing": {"mask": ka.masks.Causal(), "padded": True, "empty": True},
    "grouped heads": {"groups": 2, "mask": "causal", "padded": True},
    "one group": {"groups": 1},
    "one query": {"queries": 1, "padded": True},
    "temperature": {"normalizer": ka.normalizers.Softmax(temperature=2.5), "padded": True},
    "dot": {"score": "dot"},
    "cosine": {"score": "cosine", "mask": "causal"},
    "bilinear": {"score": "bilinear", "groups": 2, "padded": True},
    "rotary": {"position": "rotary", "mask": "causal"},
    "positions": {"mask": "causal", "query_positions": np.arange(5, 5 + 70)},
    "small values": {"value_dim": 3, "padded": True},
    "large values": {"value_dim": 13, "mask": "causal", "groups": 2},
}
SLICED = {
    "window": {"mask": WINDOW},
    "rows that see nothing": {"mask": WINDOW, "padded": True, "empty": True},
    "grouped heads": {"mask": WINDOW, "groups": 2, "value_dim": 3},
    "window and global tokens": {"mask": WINDOW | ka.masks.Global((0, 60)), "padded": True},
    "additive": {"score": "additive", "mask": WINDOW},
    "bias": {"mask": WINDOW, "biased": True, "groups": 2},
    "alibi": {"mask": WINDOW, "position": "alibi"},
    "relative bias": {"mask": WINDOW, "position": "relative_bias", "padded": True},
    "sigmoid": {"mask": WINDOW, "normalizer": "sigmoid"},
    "entmax": {"mask": WINDOW, "normalizer": "entmax", "padded": True},
    "soft cap": {"normalizer": ka.normalizers.Softmax(soft_cap=3.0, plus_one=True), "mask": WINDOW},
}


def attention(
    kernel,
    dtype,
    score="scaled_dot",
    position=None,
    groups=N,
    value_dim=H,
    queries=70,
    keys=83,
    padded=False,
    empty=False,
    biased=False,
    mask=None,
    query_positions=None,
    **kwargs,
):
    """Output and gradients of query, key, value, bias and weights, by `kernel`, as float32."""
    random = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    shapes = [(B, queries, N, H), (B, keys, groups, H), (B, keys, groups, value_dim)]
    tensors = [ops.cast(random.normal(size=shape), dtype) for shape in shapes]
    if biased:
        tensors.append(random.normal(size=(1, N, queries, keys)).astype("float32"))
    upstream = ops.cast(random.normal(size=(B, queries, N, value_dim)), dtype)
    allowed = None
    if padded:
        allowed = random.random((B, 1, 1, keys)) < 0.6
        allowed[:, :, :, 0] = True
        if empty:  # some queries see nothing at all
            allowed = allowed & (random.random((1, 1, queries, 1)) < 0.7)
        allowed = ops.convert_to_tensor(allowed)
    score, position = ka.scores.get(score), ka.positions.get(position)
    parts = [part for part in (score, position) if isinstance(part, keras.layers.Layer)]
    for part in parts:
        part.build(*([(B, None, N, H)] * (2 if part is score else 1)))

    def compute(query, key, value, bias=None):
        output = ka.attention.attend(
            query,
            key,
            value,
            score=score,
            position=position,
            mask=ka.attention.Visibility(mask, allowed, query_positions=query_positions),
            bias=bias,
            return_weights=False,
            implementation=kernel,
            **kwargs,
        )
        assert keras.backend.standardize_dtype(output.dtype) == dtype
        return output

    def loss(*tensors):
        return ops.sum(ops.cast(compute(*tensors) * upstream, "float32"))

    variables = [weight for part in parts for weight in part.trainable_weights]
    _, gradients = value_and_gradients(loss, tensors, variables)
    return [
        np.zeros(()) if x is None else ops.convert_to_numpy(ops.cast(x, "float32"))
        for x in (compute(*tensors), *gradients)
    ]


def assert_equals_dense(kernel, dtype, case):
    tolerance = {"float32": 2e-5, "bfloat16": 6e-2}[dtype]
    actual, expected = (attention(name, dtype, **case) for name in (kernel, "dense"))
    for ours, theirs in zip(actual, expected, strict=True):
        assert np.all(np.isfinite(ours))
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=tolerance * scale)
    return actual


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", FUSED)
def test_fused_equals_dense(case, dtype):
    assert_equals_dense("fused", dtype, FUSED[case])


def test_fused_gives_zeros_where_nothing_is_seen():
    output, by_query, *_ = attention("fused", "float32", **FUSED["rows that see nothing"])
    empty = np.all(output == 0, axis=(2, 3))
    assert empty.any() and not empty.all()
    np.testing.assert_array_equal(by_query[empty], 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", SLICED)
@pytest.mark.parametrize("kernel", ["banded", "chunked"])
def test_sliced_equals_dense(kernel, case, dtype):
    assert_equals_dense(kernel, dtype, SLICED[case])


MASKS = [None, shared.CAUSAL, shared.WINDOW, ka.masks.Window(5)]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("same", [True, False])
def test_lengths_are_the_mask_of_padding(mask, same):
    """Check that padded queries give zeros, and so does a row of only padding."""
    lengths, heads = shared.LENGTHS, shared.draw_heads()
    actual = shared.attend(lengths=lengths, same=same, mask=mask, implementation="fused")(*heads)
    tokens = np.arange(shared.T)[None] < lengths[:, None]
    expected = ka.attention.attend(
        *heads,
        mask=ka.attention.Visibility(mask, query_mask=tokens, key_mask=tokens),
        return_weights=False,
        implementation="dense",
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(actual), ops.convert_to_numpy(expected), atol=2e-6
    )
    assert np.all(ops.convert_to_numpy(actual)[~tokens] == 0)


def test_fused_is_chosen_and_gives_what_the_weights_say():
    x = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")
    layer = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary")
    assert ka.attention.explain(layer, 9).implementation == "fused"
    plain = layer(x, x)
    seen, _ = layer(x, x, return_attention_scores=True)
    np.testing.assert_allclose(plain, seen, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"return_weights": True}, "weights are requested"),
        ({"dropout": lambda weights: weights}, "dropout"),
        ({"score": "additive"}, "not a dot product"),
        ({"normalizer": "sparsemax"}, "plain softmax of backends"),
        ({"normalizer": ka.normalizers.Softmax(soft_cap=2.0)}, "plain softmax of backends"),
        ({"position": "alibi"}, "bias"),
    ],
)
def test_fused_kernel_refuses_unsupported_arguments(arguments, message):
    x = np.zeros((1, 3, 1, 4), "float32")
    with pytest.raises(ValueError, match=message):
        ka.attention.attend(
            x, x, x, implementation="fused", **{"return_weights": False, **arguments}
        )


def test_flash_attention_is_asked_of_the_backend(monkeypatch):
    name = f"fused_{keras.backend.backend()}"
    backend = importlib.import_module(f"keras_attention.attention.kernels.{name}")
    asked, attend = [], backend.attend

    def listening(query, key, value, terms, flash_attention):
        asked.append((flash_attention, terms.is_causal, terms.mask is None))
        return attend(query, key, value, terms, None)  # a CPU has none

    monkeypatch.setattr(backend, "attend", listening)
    x = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")
    for asking in (None, True, False):
        layer = ka.attention.MultiHeadAttention(2, 4, mask="causal", flash_attention=asking)
        layer(x, x)
        assert asked.pop() == (asking, True, True)
        layer(x, x, value_mask=np.ones((2, 9), "bool"))
        assert asked.pop() == (asking, False, False)
    layer = ka.attention.MultiHeadAttention(2, 4, normalizer="sparsemax", flash_attention=True)
    with pytest.raises(ValueError, match="flash_attention=True.*Sparsemax"):
        layer(x, x)
