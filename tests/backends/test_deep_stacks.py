"""Rematerialised and scanned stacks need less memory and less to compile, and compute the same."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.gradients import enabled

random = np.random.default_rng(0)
B, T, D = 4, 5, 8
X = random.normal(size=(2 * B, T, D)).astype("float32")
SIZE = dict(num_layers=3, num_heads=2, hidden_dim=D, intermediate_dim=12)
DROPOUTS = dict(dropout=0.2, attention_dropout=0.2)
JAX = keras.backend.backend() == "jax"
on_jax = pytest.mark.skipif(not JAX, reason="loops over layers are JAX's")


def attention(**kwargs):
    return ka.attention.MultiHeadAttention(2, 4, dropout=0.2, **kwargs)


def feed_forward():
    return ka.blocks.FeedForward(12, dropout=0.2)


def experts():
    return ka.blocks.MixtureOfExperts([feed_forward() for _ in range(2)], top_k=1)


# Blocks with all that a call may draw, change or add: dropouts, moving averages, losses, metrics.
BLOCKS = {
    "encoder": lambda **kwargs: ka.blocks.EncoderBlock(
        attention(position="relative_bias"), feed_forward(), stochastic_depth=0.3, **kwargs
    ),
    "decoder": lambda **kwargs: ka.blocks.DecoderBlock(
        attention(mask="causal"), attention(), feed_forward(), norm="resi_dual", **kwargs
    ),
    "conformer": lambda **kwargs: ka.blocks.ConformerBlock(
        feed_forward(), attention(position="rotary"), feed_forward(), **kwargs
    ),
    "experts": lambda **kwargs: ka.blocks.EncoderBlock(attention(), experts(), **kwargs),
}


def chain(kind, **kwargs):
    """A model of two blocks that are called on padded vectors."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    inputs = keras.Input((T, D))
    x = source = keras.layers.Masking(9.0)(keras.layers.Identity()(inputs))
    for i in range(2):
        block = BLOCKS[kind](name=f"block_{i}", dropout=0.2, **kwargs)
        x = block(x, source) if kind == "decoder" else block(x)
    return keras.Model(inputs, x[0] if kind == "decoder" else x)


def train(model, epochs=1):
    """The losses of two steps, and the state after them: weights, seeds and averages."""
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=JAX)
    x = np.where(np.arange(T)[:, None] < 4, X, 9.0).astype("float32")
    losses = []
    keep = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: losses.append(logs))
    with enabled():
        model.fit(x, X, batch_size=B, shuffle=False, verbose=0, callbacks=[keep])
    state = [keras.ops.convert_to_numpy(variable.value) for variable in model.variables]
    return [float(logs["loss"]) for logs in losses], state


def assert_same(found, expected):
    (losses, state), (expected_losses, expected_state) = found, expected
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    for one, other in zip(state, expected_state, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kind", BLOCKS)
def test_rematerialised_blocks_lose_the_same(kind):
    expected, found = (train(chain(kind, remat=remat)) for remat in (False, True))
    assert expected[0][0] != expected[0][1]
    assert_same(found, expected)


def test_weights_are_read_as_they_are_kept():
    """In mixed precision a layer's weights are cast where they are used, and not before."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        expected, found = (train(chain("experts", remat=remat)) for remat in (False, True))
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


def test_a_saved_model_keeps_the_setting(tmp_path):
    model = chain("decoder", remat=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("block_1").remat is True
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)


def labeler(**kwargs):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    return ka.models.sequence_labeler(20, 6, **{**SIZE, **DROPOUTS, **kwargs})


IDS = random.integers(1, 20, size=(B, T)).astype("int32") * (np.arange(T) < [[5], [3], [4], [1]])


def differentiate(model, x=IDS):
    """A function of trained and other variables: ((loss, the others afterwards), gradients)."""
    import jax

    def lose(trained, others):
        output, others = model.stateless_call(trained, others, x, training=True)
        return keras.ops.mean(keras.ops.square(output)), others

    return jax.jit(jax.value_and_grad(lose, has_aux=True))


def values(model):
    groups = model.trainable_variables, model.non_trainable_variables
    return [[variable.value for variable in group] for group in groups]


def lower(model, x=IDS):
    return differentiate(model, x).lower(*values(model))


@on_jax
@pytest.mark.parametrize(
    "kwargs",
    [
        dict(position="relative_bias", shared_position=True),
        dict(norm="resi_dual", remat=True),
        dict(position="rotary", layer_masks=["causal"] * 3, remat=True),
    ],
)
def test_a_scanned_stack_has_the_gradients_of_its_layers(kwargs):
    expected, found = (labeler(**kwargs, scan_layers=scan) for scan in (False, True))
    paths = [[variable.path for variable in model.weights] for model in (expected, found)]
    assert paths[0] == paths[1] and "block_2/attention/query/kernel" in paths[0]
    (loss, seeds), gradients = differentiate(expected)(*values(expected))
    (found_loss, found_seeds), found_gradients = differentiate(found)(*values(found))
    np.testing.assert_allclose(found_loss, loss, rtol=1e-6)
    for one, other in zip(found_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    drawn = [np.asarray(seed)[1] for seed in seeds]
    assert drawn == [np.asarray(seed)[1] for seed in found_seeds] and set(drawn) == {1}


@on_jax
def test_a_scanned_decoder_gives_each_layer():
    keras.utils.set_random_seed(0)
    x, encoded = keras.Input((T, D)), keras.Input((3, D))
    models = []
    for scan in (False, True):
        decoder = ka.models.TransformerDecoder(**SIZE, scan_layers=scan)
        models.append(keras.Model([x, encoded], decoder(x, encoded, each_layer=True)))
    models[1].set_weights(models[0].get_weights())
    import jax

    expected = models[0]([X, X[:, :3]])
    found = jax.jit(models[1])([X, X[:, :3]])
    assert len(found) == len(expected) == 3
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@on_jax
def test_the_program_of_a_scanned_stack_does_not_grow():
    lines = {
        (scan, layers): lower(labeler(num_layers=layers, scan_layers=scan)).as_text().count("\n")
        for scan, layers in [(True, 1), (True, 16), (False, 4)]
    }
    assert lines[True, 16] < 1.3 * lines[True, 1] < lines[False, 4]


@on_jax
def test_rematerialised_stacks_use_less_temporary_memory():
    text = {remat: lower(labeler(remat=remat)).as_text() for remat in (False, True)}
    assert text[True].count("optimization_barrier") >= 3 > text[False].count("optimization_barrier")
    kept = {
        remat: lower(labeler(num_layers=8, scan_layers=True, remat=remat), np.tile(IDS, (4, 8)))
        .compile()
        .memory_analysis()
        .temp_size_in_bytes
        for remat in (False, True)
    }
    assert kept[True] < 0.5 * kept[False], kept


@on_jax
def test_scanned_layers_write_record_and_are_saved_as_others(tmp_path):
    size = {**SIZE, "dropout": 0.1, "position": "rotary"}
    plain = ka.models.causal_language_model(20, **size)
    model = ka.models.causal_language_model(20, **size, scan_layers=True, remat=True)
    model.set_weights(plain.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [w.path for w in loaded.weights] == [w.path for w in plain.weights]
    prompt = IDS[:2, :3]
    expected = ka.generation.generate(plain, prompt, max_new_tokens=4)
    found = ka.generation.generate(loaded, prompt, max_new_tokens=4)
    np.testing.assert_array_equal(found, expected)
    maps = []
    for one in (plain, loaded):
        with ka.visualization.record_attention(one) as recorded:
            one(IDS)
        maps.append(recorded)
    assert len(maps[0]) == 3 and list(maps[1]) == [f"blocks/{path}" for path in maps[0]]
    for path, weights in maps[0].items():
        np.testing.assert_allclose(maps[1][f"blocks/{path}"], weights, atol=1e-6)


@on_jax
def test_low_rank_changes_of_scanned_layers_are_trained():
    model = labeler(scan_layers=True)
    ka.training.enable_lora(model, rank=2)
    (loss, _), gradients = differentiate(model)(*values(model))
    assert np.isfinite(loss) and len(gradients) == 3 * 4 + 2
    model = labeler(scan_layers=True)
    model.get_layer("blocks").blocks[1].feed_forward.enable_lora(2, ["output"], None)
    with pytest.raises(
        ValueError, match="block_1 has other weights than block_0.*scan_layers=Fals"
    ):
        lower(model)


@on_jax
@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(stochastic_depth=0.2), "block_0 and block_1 differ in stochastic_depth: 0.0 and 0.1"),
        (dict(num_blocks=1), "scan_layers=True with num_blocks=1"),
        (dict(layer_masks=["causal", None, None]), "block_0 and block_1 differ in attention.mask"),
        (dict(first_norm=False), "differ in norm.first_norm: False and True"),
    ],
)
def test_refuses_layers_that_differ(wrong, message):
    with pytest.raises(ValueError, match=message):
        labeler(**wrong, scan_layers=True)


@pytest.mark.skipif(JAX, reason="JAX has it")
def test_other_backends_refuse_to_scan():
    with pytest.raises(ValueError, match="scan_layers=True is for JAX, and Keras runs on"):
        labeler(scan_layers=True)
