"""Mixture of experts by its definition: a loop over tokens, choices and slots."""

import math

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.gradients import enabled

random = np.random.default_rng(0)
B, T, D, E = 2, 11, 5, 3
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[7], [11]])
EVERYTHING = np.ones((B, T), bool)


def mixture(experts=E, **kwargs):
    layer = ka.blocks.MixtureOfExperts(
        [ka.blocks.FeedForward(4, "relu") for _ in range(experts)], **kwargs
    )
    layer.build((None, None, D))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def expert(layer, x):
    inner, inner_bias, outer, outer_bias = (np.asarray(w) for w in layer.weights)
    return np.maximum(x @ inner + inner_bias, 0) @ outer + outer_bias


def route(layer, x):
    """Return the experts of one token, best first, their gates, and all probabilities."""
    logits = np.asarray(x, "float64") @ np.asarray(layer._router.kernel, "float64")
    probabilities = np.exp(logits) / np.exp(logits).sum()
    chosen = sorted(range(len(logits)), key=lambda e: (-probabilities[e], e))[: layer.top_k]
    gates = probabilities[chosen]
    return chosen, gates / gates.sum() if layer.top_k > 1 else gates, probabilities, logits


def by_definition(layer, x, mask):
    slots = x.shape[0] * x.shape[1]
    if layer.capacity_factor is not None:
        slots = math.ceil(layer.capacity_factor * layer.top_k * slots / len(layer.experts))
    taken, result = [0] * len(layer.experts), np.zeros_like(x)
    for choice in range(layer.top_k):
        for b in range(x.shape[0]):
            for t in range(x.shape[1]):
                chosen, gates, _, _ = route(layer, x[b, t])
                e = chosen[choice]
                if mask[b, t] and taken[e] < slots:
                    taken[e] += 1
                    result[b, t] += gates[choice] * expert(layer.experts[e], x[b, t])
    return result


def losses_by_definition(layer, x, mask):
    tokens = [route(layer, x[b, t]) for b in range(B) for t in range(T) if mask[b, t]]
    share, probability = np.zeros(E), np.zeros(E)
    for chosen, _, probabilities, _ in tokens:
        for e in chosen:
            share[e] += 1 / layer.top_k / len(tokens)
        probability += probabilities / len(tokens)
    z = np.mean([np.log(np.exp(logits).sum()) ** 2 for *_, logits in tokens])
    return E * (share @ probability), z


MASKS = pytest.mark.parametrize("mask", [None, PADDING], ids=["full", "padded"])


@MASKS
@pytest.mark.parametrize("top_k", [1, 2, 3])
@pytest.mark.parametrize("capacity_factor", [None, 0.3, 0.8, 1.0, 1.25])
def test_by_definition(top_k, capacity_factor, mask):
    layer = mixture(top_k=top_k, capacity_factor=capacity_factor)
    expected = by_definition(layer, X, EVERYTHING if mask is None else mask)
    np.testing.assert_allclose(layer(X, mask=mask), expected, atol=1e-5)


@MASKS
@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("capacity_factor", [None, 0.8])
def test_losses_by_definition(top_k, capacity_factor, mask):
    layer = mixture(
        top_k=top_k, capacity_factor=capacity_factor, load_balance=0.3, router_z_loss=0.7
    )
    layer(X, mask=mask, training=True)
    balance, z = losses_by_definition(layer, X, EVERYTHING if mask is None else mask)
    np.testing.assert_allclose(layer.losses, [0.3 * balance + 0.7 * z], rtol=1e-5)


def test_enough_slots_drop_no_token():
    layer = mixture(top_k=2, capacity_factor=1.5)  # = E / top_k
    free = ka.blocks.MixtureOfExperts(layer.experts, top_k=2)
    free.build((None, None, D))
    free._router.set_weights(layer._router.get_weights())
    np.testing.assert_allclose(layer(X), free(X), atol=1e-5)


@pytest.mark.parametrize("capacity_factor", [None, 0.8])
def test_padding_is_not_routed(capacity_factor):
    """Check that padding changes neither tokens nor losses, and gives zeros."""
    layer = mixture(capacity_factor=capacity_factor, router_z_loss=0.1)
    other = np.where(PADDING[..., None], X, 50.0).astype("float32")
    one = np.asarray(layer(X, mask=PADDING, training=True))
    loss = float(layer.losses[0])
    layer._clear_losses()
    two = np.asarray(layer(other, mask=PADDING, training=True))
    np.testing.assert_allclose(two, one, atol=1e-6)
    np.testing.assert_allclose(layer.losses[0], loss, rtol=1e-6)
    assert not one[~PADDING].any() and one[PADDING].any(axis=-1).all()
    nothing = layer(X, mask=np.zeros((B, T), bool), training=True)
    assert not np.any(nothing) and np.isfinite(layer.losses[-1])


def test_losses_are_only_added_in_training():
    layer = mixture()
    layer(X)
    assert layer.losses == []
    layer(X, training=True)
    assert len(layer.losses) == 1


def test_balanced_experts_have_the_smallest_loss():
    """Check that equal shares have loss 1, and that one chosen expert of E has loss E."""
    layer = mixture(top_k=1, load_balance=1.0)
    tokens = np.eye(E, D, dtype="float32")[None]
    for strength, expected in [(1e-3, 1.0), (50.0, 1.0)]:
        layer._router.kernel.assign(strength * np.eye(D, E))
        layer(tokens, training=True)
        np.testing.assert_allclose(layer.losses[-1], expected, rtol=1e-3)
        layer._clear_losses()
    layer._router.kernel.assign(50.0 * np.eye(1, E) * np.ones((D, 1)))
    layer(tokens, training=True)
    np.testing.assert_allclose(layer.losses[-1], E, rtol=1e-5)


@pytest.mark.slow
def test_the_balance_loss_spreads_the_tokens():
    layer = mixture(top_k=1, load_balance=1.0)
    kernel = np.asarray(layer._router.kernel) * 0.1
    layer._router.kernel.assign(kernel + X.mean((0, 1))[:, None] * np.array([9.0, 0.0, 0.0]))
    tokens = keras.Input((None, D))
    model = keras.Model(tokens, layer(tokens))

    def busiest():
        asked = [route(layer, x)[0][0] for x in X.reshape(-1, D)]
        return np.bincount(asked, minlength=E).max() / len(asked)

    before = busiest()
    model.compile(keras.optimizers.Adam(0.1), loss=lambda y, p: 0.0 * keras.ops.sum(p))
    model.fit(X, X, epochs=30, verbose=0)
    assert before > 0.6 and busiest() < 0.5


def test_a_block_passes_mask_and_losses_on():
    layer = mixture(load_balance=1.0)
    block = ka.blocks.EncoderBlock(ka.attention.MultiHeadAttention(2, 4), layer, norm="post")
    tokens = keras.Input((None, D))
    model = keras.Model(tokens, block(keras.layers.Masking()(tokens)))
    padded = np.where(PADDING[..., None], X, 0.0).astype("float32")
    model(padded, training=True)
    loss = float(model.losses[0])
    layer._clear_losses()
    longer = np.pad(padded, ((0, 0), (0, 6), (0, 0)))
    model(longer, training=True)
    np.testing.assert_allclose(model.losses[0], loss, rtol=1e-5)


def test_routing_is_float32_in_mixed_precision():
    """Check logits whose difference half precision cannot hold."""
    layer = mixture(experts=2, top_k=1, dtype="mixed_float16")
    layer._router.kernel.assign(np.zeros((D, 2)) + [[8.0, 8.001]])
    x = np.ones((1, 4, D), "float16")
    expected = [expert(layer.experts[1], x[0, 0].astype("float32")) * 0.50125]
    np.testing.assert_allclose(layer(x)[0, :1], expected, rtol=1e-2, atol=1e-2)
    assert layer._router.compute_dtype == "float32"


def test_a_traced_call_leaves_no_symbolic_losses():
    import tensorflow as tf

    layer = mixture()
    tf.function(lambda x: layer(x, training=False))(X)
    assert layer.losses == []


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.blocks.MixtureOfExperts([]), r"experts=\[\]"),
        (lambda: ka.blocks.MixtureOfExperts(["relu"]), r"experts\[0\]='relu'"),
        (lambda: ka.blocks.MixtureOfExperts([keras.layers.Dense(3)] * 2), "the same layer twice"),
        (lambda: mixture(top_k=4), "top_k=4 is more than 3"),
        (lambda: mixture(top_k=0), "top_k=0"),
        (lambda: mixture(capacity_factor=0), "capacity_factor=0"),
    ],
    ids=["none", "no layer", "twice", "too many", "zero", "capacity"],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


on_jax = keras.backend.backend() == "jax"


@pytest.mark.slow
@pytest.mark.skipif(on_jax, reason="JAX takes no metrics from layers while they run")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_fit_logs_the_balance(compiled):
    first, second = mixture(name="first"), mixture(top_k=1, load_balance=0.0, name="second")
    x = keras.Input((None, D))
    model = keras.Model(x, second(first(x)))
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=not compiled)
    with enabled():
        fitted = model.fit(X, X, validation_data=(X, X), batch_size=1, epochs=2, verbose=0)
    history = fitted.history
    assert set(history) == {"loss", "val_loss", "first_load_balance", "second_load_balance"}
    inner = keras.ops.convert_to_numpy(first(X))
    for layer, inputs in ((first, X), (second, inner)):
        expected = []
        for row in range(B):
            mask = np.zeros((B, T), bool)
            mask[row] = True
            expected.append(losses_by_definition(layer, inputs, mask)[0])
        logged = history[f"{layer.name}_load_balance"]
        np.testing.assert_allclose(logged, [np.mean(expected)] * 2, rtol=1e-4)
    logs = model.evaluate(X, X, verbose=0, return_dict=True)
    assert set(logs) == {"loss"}


@pytest.mark.slow
def test_metrics_shown_by_fit_are_not_saved(tmp_path):
    x = keras.Input((None, D))
    layer = mixture(name="experts")
    model = keras.Model(x, layer(x))
    count = len(model.weights)
    model.compile("sgd", "mse")
    with enabled():
        model.fit(X, X, verbose=0)
    assert len(model.weights) == count == len(layer.weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)
    with enabled():
        history = loaded.fit(X, X, verbose=0).history
    assert on_jax or "experts_load_balance" in history
