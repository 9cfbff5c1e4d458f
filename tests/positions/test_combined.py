import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention import positions

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 5, 4)).astype("float32")
Q = RANDOM.normal(size=(2, 5, 3, 4)).astype("float32")


def test_combined_positions_add_their_embeddings():
    learned, sinusoidal = positions.Learned(11), positions.Sinusoidal()
    combined = positions.get([learned, sinusoidal])
    combined.build(X.shape)
    for where in (None, [5, 6, 7, 8, 9]):
        added = [np.asarray(part.embed(X, where)) - X for part in (learned, sinusoidal)]
        np.testing.assert_allclose(combined.embed(X, where), X + sum(added), atol=1e-6)
    assert combined.rotate(Q) is not None and combined.bias(None, None, Q) is None


def test_combined_positions_rotate_in_order_and_sum_biases():
    parts = [positions.Rotary(), positions.ALiBi(), positions.RelativeBias(8, 20)]
    combined = positions.CombinedPositions(parts)
    combined.build(Q.shape)
    assert len(combined.trainable_weights) == 1 and parts[2].built
    i, j = np.arange(3, 8), np.arange(7)
    np.testing.assert_allclose(combined.rotate(Q, i), parts[0].rotate(Q, i), atol=1e-6)
    expected = parts[1].bias(i, j, Q) + parts[2].bias(i, j, Q)
    np.testing.assert_allclose(combined.bias(i, j, Q), expected, atol=1e-6)
    twice = positions.CombinedPositions([positions.Rotary(), positions.Rotary()])
    np.testing.assert_allclose(twice.rotate(Q, i), parts[0].rotate(Q, 2 * i), atol=1e-4)


def test_combined_positions_sum_value_terms_and_rotate_keys():
    parts = [positions.Shaw(2), positions.Shaw(3), positions.ALiBi(), positions.XPos(scale_base=10)]
    combined = positions.CombinedPositions(parts)
    combined.build(Q.shape)
    i, j = np.arange(3, 8), np.arange(7)
    weights = RANDOM.random(size=(2, 3, 5, 7)).astype("float32")
    expected = sum(np.asarray(part.values(i, j, weights)) for part in parts[:2])
    np.testing.assert_allclose(combined.values(i, j, weights), expected, atol=1e-6)
    assert positions.get(["alibi", "rotary"]).values(i, j, weights) is None
    np.testing.assert_allclose(combined.rotate_key(Q, i), parts[3].rotate_key(Q, i), atol=1e-6)
    assert not np.allclose(combined.rotate_key(Q, i), combined.rotate(Q, i), atol=0.1)


def test_half_precision_is_rounded_once():
    combined = positions.get(["sinusoidal"] * 8)
    x = ops.ones((1, 50, 6), "bfloat16")
    exact = 1 + 8 * np.asarray(positions.Sinusoidal().waves(ops.arange(50), 6))
    result = combined.embed(x)
    assert "bfloat16" in str(result.dtype)
    np.testing.assert_allclose(ops.cast(result, "float32"), exact, rtol=2**-8, atol=1e-5)


def test_combined_positions_have_the_roles_of_their_parts():
    combined = positions.get(["sinusoidal", "rotary", "alibi"])
    assert combined.roles == {"embed", "rotate", "bias"}


def test_for_role_gives_each_layer_its_parts():
    learned, rotary, alibi = positions.Learned(5), positions.Rotary(), positions.ALiBi()
    combined = positions.get([learned, rotary, alibi])
    assert positions.for_role(combined, "embed") is learned
    assert positions.for_role(combined, "rotate") is rotary
    assert positions.for_role(combined, "embed", "rotate", "bias") is combined
    inside = positions.for_role(combined, "rotate", "bias")
    assert isinstance(inside, positions.CombinedPositions) and inside.parts == [rotary, alibi]


def test_for_role_of_a_single_part_and_none():
    rotary = positions.Rotary()
    assert positions.for_role(rotary, "rotate", "bias") is rotary
    assert positions.for_role(rotary, "embed") is None
    assert positions.for_role(None, "embed") is None
    assert positions.for_role(positions.get(["rotary", "alibi"]), "embed") is None
    with pytest.raises(ValueError, match="Unknown role 'rotary'. Known: embed, rotate, bias"):
        positions.for_role(rotary, "rotary")


@pytest.mark.parametrize(
    "names, shape, message",
    [
        (["rotary", "sinusoidal"], (2, 5, 3, 4), r"Sinusoidal\(.* does not bias or rotate"),
        (["rotary", "sinusoidal"], (2, 5, 4), r"Rotary\(.* does not embed"),
    ],
)
def test_a_part_in_the_wrong_place_is_refused(names, shape, message):
    with pytest.raises(ValueError, match=message):
        positions.get(names).build(shape)


@pytest.mark.parametrize("parts", [[], ["rotary"], [None]])
def test_parts_are_checked(parts):
    with pytest.raises(ValueError, match="parts must be a list of positions"):
        positions.CombinedPositions(parts)


def test_configs_and_weights_are_restored(tmp_path):
    class Owner(keras.layers.Layer):
        def __init__(self, position):
            super().__init__()
            self.position = positions.get(position)

        def build(self, shape):
            self.position.build(shape)

        def call(self, query):
            return self.position.bias(None, None, query)

    def model():
        query = keras.Input((None, 3, 4))
        return keras.Model(query, Owner(["alibi", "relative_bias"])(query))

    trained, fresh = model(), model()
    trained.save_weights(tmp_path / "model.weights.h5")
    assert not np.allclose(fresh(Q), trained(Q))
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh(Q), trained(Q))


NESTED = ["rotary", ["alibi", ["relative_bias", "relative_bias"]], "relative_bias"]


def nested_model():
    x = keras.Input((None, 12))
    layer = ka.attention.MultiHeadAttention(3, 4, position=NESTED, name="attention")
    return keras.Model(x, layer(x, x))


def test_weights_of_nested_positions_have_paths_of_their_own(tmp_path):
    """Load each table by its path, from a file of weights and from a whole model."""
    trained = nested_model()
    paths = [w.path for w in trained.weights]
    assert len(set(paths)) == len(paths)
    tables = [w for w in trained.weights if "relative_bias" in w.path]
    assert len(tables) == 3
    for i, table in enumerate(tables):
        table.assign(np.random.default_rng(i).normal(size=table.shape))
    x = np.random.default_rng(9).normal(size=(2, 7, 12)).astype("float32")
    expected = np.asarray(trained(x))
    trained.save_weights(tmp_path / "model.weights.h5")
    trained.save(tmp_path / "model.keras")
    fresh = nested_model()
    assert np.abs(np.asarray(fresh(x)) - expected).max() > 0.01
    fresh.load_weights(tmp_path / "model.weights.h5")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.path for w in loaded.weights] == paths
    for model in (fresh, loaded):
        np.testing.assert_allclose(model(x), expected, atol=1e-6)
        for ours, theirs in zip(model.weights, trained.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_configs_with_the_former_name_load():
    """Load a config with the former class and module, and the registered name."""
    config = keras.saving.serialize_keras_object(positions.get(["rotary", "alibi"]))
    assert config["registered_name"] == "keras_attention>Several"
    before = {"class_name": "Several", "module": "keras_attention.positions.several"}
    again = positions.get({**config, **before})
    assert isinstance(again, positions.CombinedPositions)
    assert again.parts == [positions.Rotary(), positions.ALiBi()]
