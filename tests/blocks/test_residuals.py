"""Every arrangement of a residual branch, by the equation of its paper."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.blocks import residuals
from tests.blocks.stand_ins import Plus, layer_norm

random = np.random.default_rng(0)
B, T, D = 2, 5, 7
X = random.normal(size=(B, T, D)).astype("float32")
AMOUNTS = np.linspace(-1, 2, D, dtype="float32"), np.linspace(3, -2, D, dtype="float32") ** 2


def block(norm, **kwargs):
    return ka.blocks.EncoderBlock(Plus(AMOUNTS[0]), Plus(AMOUNTS[1]), norm=norm, **kwargs)


def real_block(norm, **kwargs):
    return ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4, kernel_initializer=keras.initializers.Ones()),
        ka.blocks.FeedForward(9, kernel_initializer=keras.initializers.Ones()),
        norm=norm,
        **kwargs,
    )


def test_deep_norm_by_definition():
    x, norm = X, ka.blocks.DeepNorm(5)
    for amount in AMOUNTS:
        x = layer_norm(x * 10**0.25 + (x + amount))
    layer = block(ka.blocks.DeepNorm(5, scale_initial=False))
    np.testing.assert_allclose(layer(X), x, atol=1e-5)
    assert norm.alpha == 10**0.25


# Wang et al. (2022), figure 2
@pytest.mark.parametrize(
    "norm, alpha, beta",
    [
        (ka.blocks.DeepNorm(12), 24**0.25, 96**-0.25),
        (
            ka.blocks.DeepNorm(18, num_decoder_layers=6),
            0.81 * (18**4 * 6) ** 0.0625,
            0.87 * (18**4 * 6) ** -0.0625,
        ),
        (ka.blocks.DeepNorm(6, num_branches=3), 18**0.25, 72**-0.25),
    ],
    ids=["encoder or decoder alone", "encoder of two", "decoder of two"],
)
def test_deep_norm_constants(norm, alpha, beta):
    np.testing.assert_allclose([norm.alpha, norm.beta], [alpha, beta], rtol=1e-12)


def scaled_weights(layer, beta):
    """Check that DeepNorm has multiplied its weights, initially 1, by beta."""
    for weight in layer.weights:
        if weight.name == "kernel":
            scaled = any(name in weight.path for name in ("value", "output", "feed_forward"))
            np.testing.assert_allclose(weight, beta if scaled else 1.0, rtol=1e-6)


def test_deep_norm_scales_initial_weights():
    layer = real_block(ka.blocks.DeepNorm(3))
    layer.build((None, T, D))
    scaled_weights(layer, 24**-0.25)
    plain = real_block(ka.blocks.DeepNorm(3, scale_initial=False))
    plain.build((None, T, D))
    scaled_weights(plain, 1.0)


def test_deep_norm_scales_weights_once(tmp_path):
    beta = 24**-0.25
    layer = real_block(ka.blocks.DeepNorm(3), name="block")
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, layer(inputs))
    scaled_weights(keras.models.clone_model(model), beta)
    model.save(tmp_path / "model.keras")
    scaled_weights(keras.saving.load_model(tmp_path / "model.keras"), beta)
    with keras.StatelessScope():  # as JAX builds layers in training
        late = real_block(ka.blocks.DeepNorm(3))
        late.build((None, T, D))
    scaled_weights(late, beta)


def test_deep_norm_is_not_built_while_tracing():
    sequential = keras.Sequential([real_block(ka.blocks.DeepNorm(3))])
    sequential.compile("sgd", "mse")
    with pytest.raises(RuntimeError, match=r"model.build\(\(None, None, hidden_dim\)\)"):
        sequential.predict(X, verbose=0)
    sequential = keras.Sequential([real_block(ka.blocks.DeepNorm(3))])
    sequential.build((None, T, D))
    scaled_weights(sequential, 24**-0.25)


def test_deep_norm_does_not_scale_built_layers():
    attention = ka.attention.MultiHeadAttention(2, 4)
    attention.build((None, T, D), (None, T, D))
    before = attention.get_weights()
    norm = ka.blocks.DeepNorm(3)
    ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(9), norm=norm).build((None, T, D))
    for a, b in zip(before, attention.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_deep_norm_scales_experts_and_not_their_router():
    ones = keras.initializers.Ones()
    experts = [ka.blocks.FeedForward(3, kernel_initializer=ones) for _ in range(2)]
    layer = ka.blocks.EncoderBlock(
        keras.layers.MultiHeadAttention(2, 4, kernel_initializer="ones"),
        ka.blocks.MixtureOfExperts(experts),
        norm=ka.blocks.DeepNorm(2),
    )
    layer.build((None, T, D))
    for weight in layer.weights:
        if weight.name == "kernel" and "router" not in weight.path:
            inside = any(name in weight.path for name in ("value", "output", "feed_forward"))
            np.testing.assert_allclose(weight, 0.5 if inside else 1.0, rtol=1e-6)
    assert np.abs(layer.feed_forward._router.kernel).max() > 0.5  # Glorot's limit is 0.82


def test_rezero_by_definition():
    layer = block("rezero")
    np.testing.assert_array_equal(layer(X), X)
    (weight,) = layer.weights  # one number, for both branches
    weight.assign(0.3)
    x = X
    for amount in AMOUNTS:
        x = x + 0.3 * (x + amount)
    np.testing.assert_allclose(layer(X), x, atol=1e-5)


def test_resi_dual_by_definition():
    first, second = block("resi_dual"), block("resi_dual")
    x, total = second(first(X))
    normalized, summed = X, X
    for amount in AMOUNTS * 2:
        added = normalized + amount
        normalized, summed = layer_norm(normalized + added), summed + added
    np.testing.assert_allclose(x, normalized, atol=1e-5)
    np.testing.assert_allclose(total, summed, atol=1e-5)
    end = ka.blocks.ResiDual().end((x, total), lambda place: keras.layers.LayerNormalization())
    np.testing.assert_allclose(end, normalized + layer_norm(summed), atol=1e-3)


def test_resi_dual_passes_masks_on():
    mask = np.arange(T) < np.array([[3], [5]])
    tokens = keras.Input((None, D))
    x = keras.layers.Masking()(tokens)
    for _ in range(2):
        x = real_block("resi_dual")(x)
    pooled = ka.blocks.Pooling("mean")(
        ka.blocks.ResiDual().end(x, lambda place: keras.layers.LayerNormalization())
    )
    model = keras.Model(tokens, pooled)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    padded = np.where(mask[..., None], X, 0)
    np.testing.assert_allclose(model(padded)[:1], model(X[:1, :3]), atol=1e-4)


@pytest.mark.parametrize("norm", residuals.NAMES)
def test_layer_scale_works_with_every_norm(norm):
    """Compare a factor of 0 with a branch that adds nothing."""
    norm = ka.blocks.DeepNorm(2, scale_initial=False) if norm == "deep_norm" else norm
    silent = block(norm, layer_scale=0.0)(X)
    n = layer_norm
    expected = {
        ka.blocks.PostNorm(): n(n(X)),
        ka.blocks.DeepNorm(2, scale_initial=False): n(np.sqrt(2) * n(np.sqrt(2) * X)),
        ka.blocks.ResiDual(): (n(n(X)), X),
    }.get(residuals.get(norm), X)
    for ours, theirs in zip(
        *(x if isinstance(x, tuple) else (x,) for x in (silent, expected)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("norm", [ka.blocks.PreNorm, ka.blocks.SandwichNorm])
def test_the_first_norm_of_a_block_may_be_left_out(norm):
    layer, (first, second) = block(norm(first_norm=False)), AMOUNTS
    after = layer_norm if norm is ka.blocks.SandwichNorm else lambda x: x
    middle = X + after(X + first)
    expected = middle + after(layer_norm(middle) + second)
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)
    layer = real_block(norm(first_norm=False))
    again = ka.blocks.EncoderBlock.from_config(layer.get_config())
    np.testing.assert_allclose(again(X), layer(X), atol=1e-5)
    assert again.norm == norm(first_norm=False)


def test_old_configs_still_load():
    config = {**real_block("sandwich").get_config(), "norm": "sandwich"}
    assert ka.blocks.EncoderBlock.from_config(config).norm == ka.blocks.SandwichNorm()
    written = {"class_name": "PreNorm", "config": {}}
    config = {**real_block("pre").get_config(), "norm": written}
    assert ka.blocks.EncoderBlock.from_config(config).norm == ka.blocks.PreNorm()


class NoProjections(keras.layers.Layer):
    def call(self, query, value):
        return query


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: block("before"), "norm 'before'.*pre, post, sandwich, deep_norm"),
        (lambda: block(None), "norm=None"),
        (lambda: block("deep_norm"), r"DeepNorm needs num_layers.*DeepNorm\(num_layers=...\)"),
        (lambda: ka.blocks.DeepNorm(0), r"num_layers=0"),
        (lambda: block("pre")([X, X]), "PreNorm.*2 tensors instead of 1"),
        (lambda: block("resi_dual")([X, X, X]), "ResiDual.*3 tensors instead of 2"),
        (
            lambda: ka.blocks.EncoderBlock(
                NoProjections(), ka.blocks.FeedForward(3), norm=ka.blocks.DeepNorm(2)
            )(X),
            "NoProjections has no value_dense.*scale_initial=False",
        ),
    ],
    ids=["unknown", "none", "depth", "zero", "pair", "three", "projections"],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
