import keras
import numpy as np
import pytest

import keras_attention as ka

Accuracy = ka.training.MaskedSparseCategoricalAccuracy


def logits_for(labels, classes=7):
    return np.eye(classes, dtype="float32")[labels]


def test_counts_tokens_alike_in_batches_of_different_lengths():
    accuracy = Accuracy()
    accuracy.update_state(np.array([[1]]), logits_for([[1]]))  # 1 of 1
    accuracy.update_state(np.array([[1, 2, 3, 4, -1]]), logits_for([[1, 0, 0, 0, 0]]))  # 1 of 4
    np.testing.assert_allclose(accuracy.result(), 2 / 5)


def test_random_batches():
    rng, right, total = np.random.default_rng(0), 0, 0
    accuracy = Accuracy(ignore_class=2)
    for length in (3, 11, 5):
        labels, logits = rng.integers(0, 5, (7, length)), rng.normal(size=(7, length, 5))
        accuracy.update_state(labels, logits)
        for b, t in np.ndindex(labels.shape):
            right += labels[b, t] != 2 and int(np.argmax(logits[b, t])) == labels[b, t]
            total += labels[b, t] != 2
    np.testing.assert_allclose(accuracy.result(), right / total, rtol=1e-6)
    accuracy.reset_state()
    assert float(accuracy.result()) == 0.0


@pytest.mark.parametrize("weights", [[2.0, 1.0], [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]])
def test_weights(weights):
    accuracy = Accuracy()
    labels = np.array([[1, 2, -1], [3, 4, 5]])
    accuracy.update_state(labels, logits_for([[1, 0, 0], [0, 4, 5]]), np.array(weights))
    np.testing.assert_allclose(accuracy.result(), (2 + 1 + 1) / (4 + 3))


def test_images_and_masks_left_by_the_model():
    accuracy = Accuracy()
    accuracy.update_state(np.array([1, 2]), logits_for([1, 1]))
    np.testing.assert_allclose(accuracy.result(), 0.5)
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Embedding(3, 3, mask_zero=True)(inputs))
    model.set_weights([np.eye(3)])
    accuracy.reset_state()
    accuracy.update_state(np.array([[1, 1, 0]]), model(np.array([[1, 2, 0]])))
    np.testing.assert_allclose(accuracy.result(), 0.5)


def test_fits_and_evaluates():
    model = keras.Sequential([keras.layers.Dense(7)])
    model.compile("sgd", ka.training.MaskedSparseCategoricalCrossentropy(), metrics=[Accuracy()])
    labels = np.array([[1, 2, -1], [3, 4, 5]])
    model.fit(logits_for(labels), labels, verbose=0)
    model.set_weights([np.eye(7), np.zeros(7)])
    scores = model.evaluate(logits_for([[1, 0, 0], [3, 4, 5]]), labels, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["masked_sparse_categorical_accuracy"], 0.8)


def test_round_trip():
    accuracy = Accuracy(ignore_class=0, name="words", dtype="float64")
    config = keras.saving.serialize_keras_object(accuracy)
    assert config["registered_name"] == "keras_attention>MaskedSparseCategoricalAccuracy"
    assert keras.saving.deserialize_keras_object(config).get_config() == accuracy.get_config()
