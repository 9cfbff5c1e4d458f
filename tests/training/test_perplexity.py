import keras
import numpy as np

import keras_attention as ka

Perplexity = ka.training.MaskedPerplexity


def test_random_batches():
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


def test_weights_and_what_is_left_out_may_be_no_number():
    logits = np.zeros((2, 3, 4), "float32")
    logits[0, 2] = np.nan
    logits[1] = [0, np.log(3), -np.inf, -np.inf]
    perplexity = Perplexity()
    perplexity.update_state(np.array([[1, 2, -1], [1, 1, 1]]), logits, np.array([2.0, 1.0]))
    expected = (4 * np.log(4) + 3 * np.log(4 / 3)) / 7
    np.testing.assert_allclose(perplexity.result(), np.exp(expected), rtol=1e-5)


def test_round_trip():
    perplexity = Perplexity(ignore_class=0, name="undecided", dtype="float64")
    config = keras.saving.serialize_keras_object(perplexity)
    assert config["registered_name"] == "keras_attention>MaskedPerplexity"
    assert keras.saving.deserialize_keras_object(config).get_config() == perplexity.get_config()
