"""Attention in a ring, compared with `dense`. It runs as a program on eight devices."""

import re
import sys

import jax
import keras
import numpy as np
from keras import ops

import keras_attention as ka
from keras_attention.attention.head_structures import Sink, SoftmaxWithSink
from keras_attention.attention.kernels.ring_jax import choose_rows, plan_hops

B, T, N, H = 2, 64, 4, 8
WINDOW = ka.masks.Causal() & ka.masks.Window(20)
SOFTMAX = ka.normalizers.Softmax(soft_cap=3.0, temperature=2.0, plus_one=True)
CASES = {
    "plain": {},
    "causal": {"mask": "causal", "position": "rotary"},
    "window": {"mask": WINDOW, "padded": True},
    "window to both sides": {"mask": ka.masks.Window(5)},
    "the future alone": {"mask": ~ka.masks.Causal()},
    "global tokens": {"mask": WINDOW | ka.masks.Global((0, 60)), "padded": True},
    "rows that see nothing": {"mask": WINDOW, "padded": "queries, too"},
    "grouped heads": {"groups": 2, "value_dim": 3, "mask": "causal", "padded": True},
    "packed documents": {"packed": True, "padded": True, "mask": "causal"},
    "alibi": {"position": "alibi", "mask": "causal"},
    "relative bias": {"position": "relative_bias", "padded": True},
    "vectors of distances": {"position": "shaw", "mask": "causal"},
    "bias": {"bias": (1, N, T, T), "groups": 2},
    "bias of keys": {"bias": (B, N, 1, T)},
    "cosine": {"score": "cosine", "mask": "causal"},
    "additive": {"score": "additive"},
    "softmax": {"normalizer": SOFTMAX, "mask": "causal"},
    "sink": {"normalizer": "sink", "mask": "causal", "padded": True},
    "fewer keys": {"keys": 32, "mask": WINDOW},
    "positions": {
        "mask": "causal",
        "query_positions": np.arange(T)[::-1].copy(),
        "key_positions": np.arange(T) // 2,
    },
}


def attention(
    implementation,
    dtype="float32",
    score="scaled_dot",
    position=None,
    normalizer="softmax",
    groups=N,
    value_dim=H,
    keys=T,
    padded=False,
    packed=False,
    bias=None,
    dropout=None,
    **visible,
):
    """Output, and the gradients of query, key, value, bias and weights."""
    random = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    shapes = [(B, T, N, H), (B, keys, groups, H), (B, keys, groups, value_dim)]
    tensors = [random.normal(size=shape) for shape in shapes]
    tensors += [] if bias is None else [random.normal(size=bias)]
    tensors = [ops.cast(x, dtype) for x in tensors]
    upstream = ops.cast(random.normal(size=(B, T, N, value_dim)), dtype)
    if padded:
        allowed = np.arange(keys) < np.array([[keys - 13], [5]])
        allowed = allowed[:, None, None]
        if padded == "queries, too":
            allowed = allowed & (random.random((1, 1, T, 1)) < 0.7)
        visible["attention_mask"] = allowed
    if packed:
        documents = np.sort(random.integers(0, 4, (B, T)))
        visible["segments"] = (documents, documents)
    score, position = ka.scores.get(score), ka.positions.get(position)
    parts = [part for part in (score, position) if isinstance(part, keras.layers.Layer)]
    for part in parts:
        part.build(*([(B, None, N, H)] * (2 if part is score else 1)))
    if normalizer == "sink":
        sink = Sink(N)
        sink.build()
        sink.logits.assign(random.normal(size=N))
        normalizer = SoftmaxWithSink(ka.normalizers.Softmax(temperature=1.3), sink)
        parts.append(sink)
    weights = [weight for part in parts for weight in part.trainable_weights]

    def loss(tensors, values):
        with keras.StatelessScope(state_mapping=list(zip(weights, values, strict=True))):
            output = ka.attention.attend(
                *tensors[:3],
                bias=None if bias is None else tensors[3],
                score=score,
                position=position,
                normalizer=normalizer,
                return_weights=False,
                implementation=implementation,
                mask=ka.attention.Visibility(**visible),
                dropout=dropout,
            )
        return ops.sum(ops.cast(output * upstream, "float32")), output

    compute = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))
    (_, output), gradients = compute(tensors, [weight.value for weight in weights])
    return [np.asarray(ops.cast(x, "float32")) for x in (output, *jax.tree.leaves(gradients))]


def assert_is_dense(mesh, case, tolerances=(1e-6, 3e-6), **kwargs):
    expected = attention("dense", **case, **kwargs)
    with ka.distribution.RoleParallel(mesh).scope():
        actual = attention("ring", **case, **kwargs)
    for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=tolerances[min(i, 1)] * scale, rtol=0)


def check_every_case():
    for name, case in CASES.items():
        print("   ", name, file=sys.stderr, flush=True)
        assert_is_dense({"data": 2, "sequence": 4}, case)


def check_other_meshes():
    for name in ("window to both sides", "relative bias", "grouped heads"):
        assert_is_dense({"sequence": 8}, CASES[name])
    for name in ("causal", "sink"):
        assert_is_dense({"data": 2, "sequence": 2, "model": 2}, CASES[name])


def check_halves():
    assert_is_dense({"data": 2, "sequence": 4}, CASES["causal"], (3e-2, 6e-2), dtype="bfloat16")


def check_hops():
    """Check that keys travel only as far as the mask reaches. Keys from ahead come first."""
    reach = ka.masks.Reach
    assert plan_hops(8, 10, 10) == (0, 8)
    assert plan_hops(8, 10, 10, reach(None, 0)) == (0, 8)
    assert plan_hops(8, 10, 10, reach(9, 0)) == (0, 2)
    assert plan_hops(8, 10, 10, reach(0, 0)) == (0, 1)
    assert plan_hops(8, 10, 10, reach(9, 9)) == (7, 3)
    assert plan_hops(8, 10, 10, reach(0, -1)) == (0, 1)
    assert plan_hops(4, 10, 5, reach(9, 0))[1] == 4  # of keys that are half as many
    assert [choose_rows(n) for n in (2048, 300, 18, 257)] == [256, 150, 18, 257]


def refuses(message, **case):
    try:
        attention("ring", **case)
    except ValueError as error:
        assert re.search(message, str(error)), str(error)
    else:
        raise AssertionError(f"nothing refused: {message}")


def check_what_it_cannot_is_refused():
    named = "implementation='ring' cannot compute this attention: "
    refuses(named + "no active distribution splits the sequence among devices")
    with ka.distribution.RoleParallel({"data": 8}).scope():
        refuses(named + "no active distribution")
    with ka.distribution.RoleParallel({"data": 2, "sequence": 4}).scope():
        refuses(named + r"Sparsemax\(\) needs all scores of a row", normalizer="sparsemax")
        refuses(named + "dropout on the weights is active", dropout=lambda weights: weights)
        refuses(named + "30 keys are not split evenly among sequence=4 devices", keys=30)


class Sharper(ka.normalizers.Softmax):
    """A softmax of a user's own, of other exponents than its parent's."""

    def normalize(self, scores, allowed):
        return super().normalize(2.0 * scores, allowed)


def check_it_is_chosen():
    layer = ka.attention.MultiHeadAttention(4, 8, mask="causal", sink=True)
    assert ka.attention.explain(layer, 64).implementation == "dense"
    with ka.distribution.RoleParallel({"data": 2, "sequence": 4}).scope():
        reason = str(ka.attention.explain(layer, 64))
        assert reason == "ring: the sequence is split among 4 devices"
        assert ka.attention.explain(layer, 62).implementation == "dense"
        for normalizer in (Sharper(), "entmax"):
            layer = ka.attention.MultiHeadAttention(4, 8, normalizer=normalizer)
            assert ka.attention.explain(layer, 64).implementation != "ring"


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            print(name, file=sys.stderr, flush=True)
            check()
