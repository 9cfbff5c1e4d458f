"""LoRA and quantization of layers with projections of their own."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests import contract, gradients
from tests.contract import Case

D, N, H = 12, 3, 4
SELF = (f"B T {D}", f"B T {D}")

LAYERS = {
    "multi-head": Case(
        lambda: ka.attention.MultiHeadAttention(N, H, use_gate=True, kernel_regularizer="l2"), SELF
    ),
    "residual": Case(lambda: ka.attention.ResidualAttention(N, H), SELF),
    "memorizing": Case(lambda: ka.attention.MemorizingAttention(N, H, 6, num_neighbors=2), SELF),
    "differential": Case(lambda: ka.attention.DifferentialAttention(N, H), SELF),
    "latent": Case(
        lambda: ka.attention.LatentAttention(N, H, 5, rotary_dim=2, query_latent_dim=6), SELF
    ),
    "linear": Case(lambda: ka.attention.LinearAttention(N, H), SELF),
    "feed-forward": Case(lambda: ka.blocks.FeedForward(10, "swiglu"), (f"B T {D}",)),
}


@pytest.fixture(params=list(LAYERS))
def case(request):
    return LAYERS[request.param]


def adapted(case, **kwargs):
    """Return a model of one layer with trained LoRA matrices, and the layer."""
    layer = case.make()
    model = case.model(layer)
    layer.enable_lora(2, **kwargs)
    random = np.random.default_rng(3)
    for weight in layer.weights:
        if "lora" in weight.name:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return model, layer


def gradients_of(layer, case):
    """Return the largest number in the gradient of each trainable weight, by path."""
    weights = layer.trainable_weights
    upstream = np.random.default_rng(1).normal(size=(2, 5, D)).astype("float32")

    def loss():
        return keras.ops.sum(keras.ops.multiply(case.call(layer, case.arrays()), upstream))

    _, values = gradients.value_and_gradients(loss, variables=weights)
    values = [0.0 if g is None else keras.ops.convert_to_numpy(g) for g in values]
    return {w.path: float(np.abs(g).max()) for w, g in zip(weights, values, strict=True)}


def test_new_lora_changes_no_output_and_has_gradients(case):
    layer = case.make()
    model, arrays = case.model(layer), case.arrays()
    before = keras.ops.convert_to_numpy(model(arrays))
    kernels = contract.projections(model)
    layer.enable_lora(2)
    np.testing.assert_allclose(model(arrays), before, atol=1e-6)
    trained = gradients_of(layer, case)
    assert not [path for path in trained if path.endswith("/kernel")]
    learning = [path for path in trained if path.endswith("lora_kernel_b")]
    assert len(learning) == len(kernels) and all(trained[path] > 0 for path in learning)


@pytest.mark.slow
def test_layers_are_saved_with_their_trained_lora(case, tmp_path):
    model, layer = adapted(case)
    arrays = case.arrays()
    expected = keras.ops.convert_to_numpy(model(arrays))
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config
    assert {entry["lora_rank"] for entry in config["projections"].values()} == {2}
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(arrays), expected, atol=1e-5)
    assert [w.shape for w in loaded.weights] == [w.shape for w in model.weights]
    model.save_weights(tmp_path / "model.weights.h5")
    plain = case.model()
    plain.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(plain(arrays), expected, atol=1e-5)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy(arrays), expected, atol=1e-5)


def test_a_loaded_attention_with_lora_can_train(tmp_path):
    case = LAYERS["multi-head"]
    model, layer = adapted(case)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    trained = gradients_of(loaded.get_layer(layer.name), case)
    learning = [value for path, value in trained.items() if path.endswith("lora_kernel_b")]
    assert len(learning) == 5 and min(learning) > 0


def test_lora_for_some_projections():
    _, layer = adapted(LAYERS["multi-head"], targets=["query", "value"], lora_alpha=4)
    entry = {"lora_rank": 2, "lora_alpha": 4}
    assert layer.get_config()["projections"] == {"query": entry, "value": entry}
    assert layer.query_dense.lora_enabled and not layer.key_dense.lora_enabled
    trained = [weight.path.split("/", 1)[1] for weight in layer.trainable_weights]
    assert "key/kernel" in trained and "query/kernel" not in trained


def test_enable_lora_refuses_unbuilt_layers_and_unknown_targets():
    layer = ka.attention.MultiHeadAttention(N, H, name="attention")
    with pytest.raises(ValueError, match="attention has no weights yet"):
        layer.enable_lora(2)
    x = np.ones((1, 2, D), "float32")
    layer(x, x)
    with pytest.raises(ValueError, match="no projection 'gate'. It has query, key, value, att"):
        layer.enable_lora(2, targets=["query", "gate"])
    assert not layer.query_dense.lora_enabled


def test_quantized_layers_accept_lora(tmp_path):
    case = LAYERS["multi-head"]
    layer = case.make()
    model, arrays = case.model(layer), case.arrays()
    contract.quantize(model, "int8")
    before = keras.ops.convert_to_numpy(model(arrays))
    layer.enable_lora(2)
    np.testing.assert_allclose(model(arrays), before, atol=1e-6)
    layer.query_dense.lora_kernel_b.assign(np.full((2, H), 0.3, "float32"))
    expected = keras.ops.convert_to_numpy(model(arrays))
    assert np.abs(expected - before).max() > 1e-3
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    query_dense = loaded.get_layer(layer.name).query_dense
    assert query_dense.quantization_mode == "int8" and query_dense.lora_enabled
    np.testing.assert_allclose(loaded(arrays), expected, atol=0.05)


def test_the_config_of_an_unchanged_layer_has_no_projections(case):
    layer = case.make()
    case.model(layer)
    assert "projections" not in layer.get_config()


def test_quantize_refuses_subclasses_of_projections():
    class Doubled(ka.attention.HeadProjection):
        def call(self, inputs, training=None):
            return 2 * super().call(inputs, training)

    layer = Doubled((N, H))
    layer.build((None, None, D))
    with pytest.raises(NotImplementedError, match="Doubled may compute something else"):
        layer.quantize("int8")
    layer.quantize("int8", type_check=False)
    assert layer.quantization_mode == "int8"


def test_quantized_weights_and_outputs_equal_those_of_keras():
    x = np.random.default_rng(0).normal(size=(2, 5, D)).astype("float32")
    inputs = keras.Input((None, D))
    models = [
        keras.Model(inputs, layer(inputs, inputs))
        for layer in (keras.layers.MultiHeadAttention(N, H), ka.attention.MultiHeadAttention(N, H))
    ]
    models[1].set_weights(models[0].get_weights())
    for model in models:
        contract.quantize(model, "int8")
    theirs, ours = models
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-6)
    for mine, other in zip(ours.weights, theirs.weights, strict=True):
        assert mine.name == other.name and mine.dtype == other.dtype
        np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (mine, other)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: ka.attention.MultiHeadAttention(2, 8, mask="causal", position="rotary"),
        pytest.param(
            lambda: ka.attention.LatentAttention(2, 8, 6, rotary_dim=4, mask="causal"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["multi-head", "latent"],
)
def test_quantized_models_generate_the_same_with_and_without_a_cache(make):
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 16)(tokens)
    x = ka.blocks.EncoderBlock(make(), ka.blocks.FeedForward(16))(x)
    x = keras.layers.LayerNormalization()(x)
    model = keras.Model(tokens, keras.layers.Dense(20)(x))
    random = np.random.default_rng(3)
    for weight in model.weights:
        scale = 1.0 if "embeddings" in weight.path else 0.4
        weight.assign(random.normal(size=weight.shape, scale=scale) + ("gamma" in weight.path))
    contract.quantize(model, "int8")
    ids = np.array([[5, 7, 11], [3, 2, 9]])
    generated = ka.generation.generate(model, ids, 6)
    for _ in range(6):
        logits = keras.ops.convert_to_numpy(model(ids))[:, -1, 1:]  # padding, 0, is never generated
        ids = np.concatenate([ids, 1 + logits.argmax(axis=1)[:, None]], axis=1)
    np.testing.assert_array_equal(generated, ids[:, 3:])
    assert len(np.unique(generated)) > 2  # not always the same token
