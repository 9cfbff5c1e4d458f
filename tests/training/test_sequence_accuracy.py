import keras
import numpy as np

import keras_attention as ka

Accuracy = ka.training.MaskedSequenceAccuracy


def test_random_batches():
    rng, right, total = np.random.default_rng(0), 0, 0
    accuracy = Accuracy(ignore_class=2)
    for length in (1, 3, 2):
        labels, logits = rng.integers(0, 3, (23, length)), rng.normal(size=(23, length, 3))
        accuracy.update_state(labels, logits)
        for row, scores in zip(labels, logits, strict=True):
            counted = [t for t in range(length) if row[t] != 2]
            total += bool(counted)
            right += bool(counted) and all(int(np.argmax(scores[t])) == row[t] for t in counted)
    np.testing.assert_allclose(accuracy.result(), right / total, rtol=1e-6)
    assert 0 < right < total


def test_weights_are_of_rows_and_zero_leaves_positions_out():
    labels, logits = np.array([[1, 2], [1, 1]]), np.eye(3)[[[1, 2], [1, 2]]]
    accuracy = Accuracy()
    accuracy.update_state(labels, logits, np.array([3.0, 1.0]))
    np.testing.assert_allclose(accuracy.result(), 0.75)
    accuracy.reset_state()
    accuracy.update_state(labels, logits, np.array([[1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(accuracy.result(), 1.0)


def test_it_is_the_share_that_greedy_decoding_writes_exactly():
    """Random models are right about nothing, so the labels are what some of the rows get."""
    model = ka.models.seq2seq_recurrent(9, 6, hidden_dim=4)
    source = np.random.default_rng(0).integers(1, 9, (8, 5))
    written = ka.generation.generate(model, source, max_new_tokens=3, begin_id=2)
    labels = np.where(np.arange(8)[:, None] < 5, written, 1 + written % 5)
    target = np.concatenate([np.full((8, 1), 2), labels[:, :-1]], axis=1)
    accuracy = Accuracy()
    accuracy.update_state(labels, model({"source_ids": source, "target_ids": target}))
    np.testing.assert_allclose(accuracy.result(), 5 / 8)


def test_round_trip():
    accuracy = Accuracy(ignore_class=0, name="exact", dtype="float64")
    config = keras.saving.serialize_keras_object(accuracy)
    assert config["registered_name"] == "keras_attention>MaskedSequenceAccuracy"
    assert keras.saving.deserialize_keras_object(config).get_config() == accuracy.get_config()
