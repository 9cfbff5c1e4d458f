import keras
import numpy as np
import pytest

import keras_attention as ka

Accuracy = ka.training.MaskedSparseCategoricalAccuracy


def logits_for(labels, classes=7):
    return np.eye(classes, dtype="float32")[labels]


def test_tokens_weigh_the_same_in_batches_of_different_lengths():
    accuracy = Accuracy()
    accuracy.update_state(np.array([[1]]), logits_for([[1]]))  # 1 of 1
    accuracy.update_state(np.array([[1, 2, 3, 4, -1]]), logits_for([[1, 0, 0, 0, 0]]))  # 1 of 4
    np.testing.assert_allclose(accuracy.result(), 2 / 5)


def test_accuracy_of_random_batches():
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
def test_accuracy_with_weights(weights):
    accuracy = Accuracy()
    labels = np.array([[1, 2, -1], [3, 4, 5]])
    accuracy.update_state(labels, logits_for([[1, 0, 0], [0, 4, 5]]), np.array(weights))
    np.testing.assert_allclose(accuracy.result(), (2 + 1 + 1) / (4 + 3))


def test_accuracy_of_images_and_masked_outputs():
    accuracy = Accuracy()
    accuracy.update_state(np.array([1, 2]), logits_for([1, 1]))
    np.testing.assert_allclose(accuracy.result(), 0.5)
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Embedding(3, 3, mask_zero=True)(inputs))
    model.set_weights([np.eye(3)])
    accuracy.reset_state()
    accuracy.update_state(np.array([[1, 1, 0]]), model(np.array([[1, 2, 0]])))
    np.testing.assert_allclose(accuracy.result(), 0.5)


@pytest.mark.slow
def test_the_metric_works_in_fit_and_evaluate():
    model = keras.Sequential([keras.layers.Dense(7)])
    model.compile("sgd", ka.training.MaskedSparseCategoricalCrossentropy(), metrics=[Accuracy()])
    labels = np.array([[1, 2, -1], [3, 4, 5]])
    model.fit(logits_for(labels), labels, verbose=0)
    model.set_weights([np.eye(7), np.zeros(7)])
    scores = model.evaluate(logits_for([[1, 0, 0], [3, 4, 5]]), labels, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["masked_sparse_categorical_accuracy"], 0.8)


def test_accuracy_round_trip():
    accuracy = Accuracy(ignore_class=0, name="words", dtype="float64")
    config = keras.saving.serialize_keras_object(accuracy)
    assert config["registered_name"] == "keras_attention>MaskedSparseCategoricalAccuracy"
    assert keras.saving.deserialize_keras_object(config).get_config() == accuracy.get_config()


SequenceAccuracy = ka.training.MaskedSequenceAccuracy


def test_sequence_accuracy_of_random_batches():
    rng, right, total = np.random.default_rng(0), 0, 0
    accuracy = SequenceAccuracy(ignore_class=2)
    for length in (1, 3, 2):
        labels, logits = rng.integers(0, 3, (23, length)), rng.normal(size=(23, length, 3))
        accuracy.update_state(labels, logits)
        for row, scores in zip(labels, logits, strict=True):
            counted = [t for t in range(length) if row[t] != 2]
            total += bool(counted)
            right += bool(counted) and all(int(np.argmax(scores[t])) == row[t] for t in counted)
    np.testing.assert_allclose(accuracy.result(), right / total, rtol=1e-6)
    assert 0 < right < total


def test_weights_of_rows_and_zero_weights():
    labels, logits = np.array([[1, 2], [1, 1]]), np.eye(3)[[[1, 2], [1, 2]]]
    accuracy = SequenceAccuracy()
    accuracy.update_state(labels, logits, np.array([3.0, 1.0]))
    np.testing.assert_allclose(accuracy.result(), 0.75)
    accuracy.reset_state()
    accuracy.update_state(labels, logits, np.array([[1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(accuracy.result(), 1.0)


@pytest.mark.slow
def test_sequence_accuracy_equals_greedy_decoding():
    """Use the outputs of some rows as labels, because a random model is never right."""
    model = ka.models.seq2seq_recurrent(9, 6, hidden_dim=4)
    source = np.random.default_rng(0).integers(1, 9, (8, 5))
    written = ka.generation.generate(model, source, max_new_tokens=3, start_token_id=2)
    labels = np.where(np.arange(8)[:, None] < 5, written, 1 + written % 5)
    target = np.concatenate([np.full((8, 1), 2), labels[:, :-1]], axis=1)
    accuracy = SequenceAccuracy()
    accuracy.update_state(labels, model({"source_ids": source, "target_ids": target}))
    np.testing.assert_allclose(accuracy.result(), 5 / 8)


def test_sequence_accuracy_round_trip():
    accuracy = SequenceAccuracy(ignore_class=0, name="exact", dtype="float64")
    config = keras.saving.serialize_keras_object(accuracy)
    assert config["registered_name"] == "keras_attention>MaskedSequenceAccuracy"
    assert keras.saving.deserialize_keras_object(config).get_config() == accuracy.get_config()


Perplexity = ka.training.MaskedPerplexity


def test_perplexity_of_random_batches():
    rng, losses = np.random.default_rng(0), []
    perplexity = Perplexity(ignore_class=2)
    for length in (3, 11, 5):
        labels, logits = rng.integers(0, 5, (7, length)), rng.normal(size=(7, length, 5))
        perplexity.update_state(labels, logits)
        for b, t in np.ndindex(labels.shape):
            if labels[b, t] != 2:
                scores = logits[b, t]
                losses.append(np.log(np.exp(scores).sum()) - scores[labels[b, t]])
    np.testing.assert_allclose(perplexity.result(), np.exp(np.mean(losses)), rtol=1e-5)


def test_ignored_positions_may_be_nan():
    logits = np.zeros((2, 3, 4), "float32")
    logits[0, 2] = np.nan
    logits[1] = [0, np.log(3), -np.inf, -np.inf]
    perplexity = Perplexity()
    perplexity.update_state(np.array([[1, 2, -1], [1, 1, 1]]), logits, np.array([2.0, 1.0]))
    expected = (4 * np.log(4) + 3 * np.log(4 / 3)) / 7
    np.testing.assert_allclose(perplexity.result(), np.exp(expected), rtol=1e-5)


def test_perplexity_round_trip():
    perplexity = Perplexity(ignore_class=0, name="undecided", dtype="float64")
    config = keras.saving.serialize_keras_object(perplexity)
    assert config["registered_name"] == "keras_attention>MaskedPerplexity"
    assert keras.saving.deserialize_keras_object(config).get_config() == perplexity.get_config()
