"""Scanned and rematerialised stacks on JAX need less memory and compile less."""

import dataclasses

import jax
import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.backends.test_deep_stacks import IDS, SIZE, D, T, X, labeler
from tests.stacks import make_writer


def differentiate(model, x=IDS):
    """Return a function of trained and other variables: ((loss, new others), gradients)."""

    def lose(trained, state):
        output, state = model.stateless_call(trained, state, x, training=True)
        return keras.ops.mean(keras.ops.square(output)), state

    return jax.jit(jax.value_and_grad(lose, has_aux=True))


def values(model):
    groups = model.trainable_variables, model.non_trainable_variables
    return [[variable.value for variable in group] for group in groups]


def lower(model, x=IDS):
    return differentiate(model, x).lower(*values(model))


@pytest.mark.parametrize(
    "kwargs",
    [
        dict(position="relative_bias", shared_position=True),
        dict(norm="resi_dual", remat=True),
        dict(position="rotary", mask="causal", remat=True),
    ],
)
def test_a_scanned_stack_has_the_gradients_of_its_layers(kwargs):
    expected, actual = (labeler(**kwargs, scan_layers=scan) for scan in (False, True))
    paths = [[variable.path for variable in model.weights] for model in (expected, actual)]
    assert paths[0] == paths[1] and "block_2/attention/query/kernel" in paths[0]
    (loss, seeds), gradients = differentiate(expected)(*values(expected))
    (found_loss, found_seeds), found_gradients = differentiate(actual)(*values(actual))
    np.testing.assert_allclose(found_loss, loss, rtol=1e-6)
    for one, other in zip(found_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    drawn = [np.asarray(seed)[1] for seed in seeds]
    assert drawn == [np.asarray(seed)[1] for seed in found_seeds] and set(drawn) == {1}


def test_a_scanned_decoder_gives_each_layer():
    keras.utils.set_random_seed(0)
    x, encoded = keras.Input((T, D)), keras.Input((3, D))
    models = []
    for scan in (False, True):
        decoder = ka.models.TransformerDecoder.of_size(**SIZE)
        decoder = dataclasses.replace(decoder, scan_layers=scan)
        models.append(keras.Model([x, encoded], decoder(x, encoded, each_layer=True)))
    models[1].set_weights(models[0].get_weights())
    expected = models[0]([X, X[:, :3]])
    actual = jax.jit(models[1])([X, X[:, :3]])
    assert len(actual) == len(expected) == 3
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_program_of_a_scanned_stack_does_not_grow():
    lines = {
        (scan, layers): lower(labeler(num_layers=layers, scan_layers=scan)).as_text().count("\n")
        for scan, layers in [(True, 1), (True, 16), (False, 4)]
    }
    assert lines[True, 16] < 1.3 * lines[True, 1] < lines[False, 4]


def test_rematerialised_stacks_use_less_temporary_memory():
    text = {remat: lower(labeler(remat=remat)).as_text() for remat in (False, True)}
    assert text[True].count("optimization_barrier") >= 3 > text[False].count("optimization_barrier")
    memory = {
        remat: lower(labeler(num_layers=8, scan_layers=True, remat=remat), np.tile(IDS, (4, 8)))
        .compile()
        .memory_analysis()
        .temp_size_in_bytes
        for remat in (False, True)
    }
    assert memory[True] < 0.5 * memory[False], memory


def test_scanned_layers_write_record_and_are_saved_as_others(tmp_path):
    size = {**SIZE, "dropout": 0.1, "position": "rotary"}
    plain = ka.models.causal_language_model(20, **size)
    model = make_writer(20, **size, scan_layers=True, remat=True)
    model.set_weights(plain.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [w.path for w in loaded.weights] == [w.path for w in plain.weights]
    prompt = IDS[:2, :3]
    expected = ka.generation.generate(plain, prompt, max_new_tokens=4)
    actual = ka.generation.generate(loaded, prompt, max_new_tokens=4)
    np.testing.assert_array_equal(actual, expected)
    maps = []
    for one in (plain, loaded):
        with ka.visualization.record_attention(one) as recorded:
            one(IDS)
        maps.append(recorded)
    assert len(maps[0]) == 3 and list(maps[1]) == [f"blocks/{path}" for path in maps[0]]
    for path, weights in maps[0].items():
        np.testing.assert_allclose(maps[1][f"blocks/{path}"], weights, atol=1e-6)


def test_low_rank_changes_of_scanned_layers_are_trained():
    model = labeler(scan_layers=True)
    ka.training.enable_lora(model, rank=2)
    (loss, _), gradients = differentiate(model)(*values(model))
    assert np.isfinite(loss) and len(gradients) == 3 * 4 + 2
    model = labeler(scan_layers=True)
    model.get_layer("blocks").blocks[1].feed_forward.enable_lora(2, ["output"], None)
    with pytest.raises(
        ValueError, match="the weights of block_1 and block_0 differ.*scan_layers=Fals"
    ):
        lower(model)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(stochastic_depth=0.2), "block_0 and block_1 differ in stochastic_depth: 0.0 and 0.1"),
        (dict(num_blocks=1), "scan_layers=True with num_blocks=1"),
        (dict(norm=ka.blocks.PreNorm(first_norm=False)), "differ in norm.first_norm: False and"),
    ],
)
def test_refuses_layers_that_differ(wrong, message):
    with pytest.raises(ValueError, match=message):
        labeler(**wrong, scan_layers=True)


def test_refuses_attentions_that_differ():
    attention = [ka.attention.MultiHeadAttention(2, 4, mask=mask) for mask in ("causal", None)]
    encoder = ka.models.TransformerEncoder(
        2, attention=attention, feed_forward=ka.blocks.FeedForward(9), scan_layers=True
    )
    with pytest.raises(ValueError, match="block_0 and block_1 differ in attention.mask"):
        encoder(keras.Input((None, D)))
