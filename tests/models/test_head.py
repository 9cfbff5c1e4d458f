"""`replace_head`: old and new layers, and models that it refuses."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.stacks import embed_characters

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
TOKENS = np.array([[5, 8, 2, 0], [7, 2, 9, 4]], "int32")
IMAGES = np.random.default_rng(0).random((2, 8, 8, 1), dtype="float32")

BUILT = {
    "sequence_labeler": (lambda: ka.models.sequence_labeler(10, 7, **SIZE), TOKENS),
    "sequence_labeler_characters": (
        lambda: ka.models.sequence_labeler(10, 7, embedding=embed_characters(9), **SIZE),
        {"token_ids": TOKENS, "character_ids": np.ones((2, 4, 16), "int32")},
    ),
    "text_classifier": (lambda: ka.models.text_classifier(10, 7, pooling="cls", **SIZE), TOKENS),
    "vision_transformer": (
        lambda: ka.models.vision_transformer(8, 7, patch_size=4, num_channels=1, **SIZE),
        IMAGES,
    ),
}


def revive(model, folder):
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


def features(model, inputs):
    """Return the input of the last layer."""
    return keras.Model(model.input, model.layers[-1].input)(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("revived", [False, True], ids=["built", "revived"])
@pytest.mark.parametrize("name", BUILT)
def test_only_the_last_layer_is_new(name, revived, tmp_path):
    build, inputs = BUILT[name]
    model = revive(build(), tmp_path) if revived else build()
    new = ka.models.replace_head(model, 3)
    assert new.name == model.name and new.layers[-1].name == "logits"
    keras.tree.assert_same_structure(new.input, model.input)
    assert new.output_shape == (*model.output_shape[:-1], 3)
    kernel, bias = new.layers[-1].weights
    assert kernel.shape == (16, 3) and np.std(kernel) > 0 and not np.any(bias)
    np.testing.assert_allclose(features(new, inputs), features(model, inputs))
    expected = features(model, inputs) @ keras.ops.convert_to_tensor(kernel)
    np.testing.assert_allclose(new(inputs), expected, atol=1e-5)
    assert model.layers[-1] is not new.layers[-1] and model(inputs).shape[-1] == 7


def test_the_new_model_is_saved_and_replaced_again(tmp_path):
    build, inputs = BUILT["sequence_labeler_characters"]
    new = ka.models.replace_head(ka.models.replace_head(build(), 3), 4)
    loaded = revive(new, tmp_path)
    assert len(loaded.weights) == len(build().weights)
    np.testing.assert_allclose(loaded(inputs), new(inputs), atol=1e-6)


def test_training_updates_the_shared_layers():
    model = BUILT["text_classifier"][0]()
    table = model.get_layer("embedding").weights[0]
    before = np.array(table)
    new = ka.models.replace_head(model, 2)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    new.compile("adam", loss, run_eagerly=True)
    new.fit(TOKENS, np.array([0, 1]), verbose=0)
    assert np.abs(np.array(table) - before).max() > 0  # the shared table


def test_the_new_head_keeps_the_settings():
    x = keras.Input((4,))
    head = keras.layers.Dense(5, "softmax", use_bias=False, name="classes", dtype="float32")
    new = ka.models.replace_head(keras.Model(x, {"shares": head(x)}), 2)
    assert new(np.ones((1, 4)))["shares"].shape == (1, 2)
    (kernel,) = new.get_layer("classes").weights
    assert kernel.shape == (4, 2) and new.layers[-1].activation is keras.activations.softmax


def test_a_head_that_several_models_call_is_replaced():
    head = keras.layers.Dense(5)
    one, other = keras.Input((4,)), keras.Input((4,))
    head(keras.layers.Dense(4)(one))
    model = keras.Model(other, head(keras.ops.tanh(other)))
    assert ka.models.replace_head(model, 2)(np.ones((1, 4))).shape == (1, 2)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_quantized_model_gets_a_head_that_learns():
    model = BUILT["text_classifier"][0]()
    model.layers[-1].quantize("int8")
    head = ka.models.replace_head(model, 2).layers[-1]
    assert head.quantization_mode is None and len(head.trainable_weights) == 2


def two_outputs():
    x = keras.Input((4,))
    return keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(3)(x)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ka.models.causal_language_model(9, **SIZE),
            "logits, of class Identity: expected a ker",
        ),
        (two_outputs, "has 2 outputs: expected one"),
        (lambda: keras.Sequential([keras.layers.Dense(2)]), "expected a functional model"),
        (lambda: keras.layers.Dense(2), "expected a functional model"),
    ],
)
def test_refuses_models_without_a_dense_head(make, message):
    with pytest.raises(ValueError, match=message):
        ka.models.replace_head(make(), 3)


@pytest.mark.parametrize("number", [0, -1, 2.5, True, None])
def test_refuses_numbers_of_classes_that_are_not_whole(number):
    with pytest.raises(ValueError, match="num_classes must be a whole number"):
        ka.models.replace_head(BUILT["text_classifier"][0](), number)
