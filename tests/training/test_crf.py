"""The loss of conditional random fields, compared with the likelihood, and in training."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals
from tests import gradients

LABELS = ["O", "B-x", "I-x"]
random = np.random.default_rng(0)


@pytest.fixture
def layer():
    layer = ka.blocks.ConditionalRandomField(LABELS)
    layer.build((None, None, 3))
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


@pytest.fixture
def batch():
    """Return logits (2, 4, 3) and labels, where the second sentence has two tokens."""
    logits = random.normal(size=(2, 4, 3)).astype("float32")
    return logits, np.array([[1, 2, 0, 1], [0, 1, -1, -1]])


def test_sum_over_a_sentence_is_the_negative_log_likelihood(layer, batch):
    logits, labels = batch
    likelihoods = layer.log_likelihood(logits, np.maximum(labels, 0), labels >= 0)
    expected = -keras.ops.convert_to_numpy(likelihoods)
    outputs = layer(logits)
    losses = ka.training.CRFLoss(reduction=None)(labels, outputs)
    losses = keras.ops.convert_to_numpy(losses)
    np.testing.assert_allclose(np.sum(losses, axis=1), expected, rtol=1e-5)
    mean = ka.training.CRFLoss()(labels, outputs)
    np.testing.assert_allclose(float(mean), np.sum(expected) / 6, rtol=1e-5)
    weighted = ka.training.CRFLoss(reduction="sum")(labels, outputs, np.array([0.0, 2.0]))
    np.testing.assert_allclose(float(weighted), 2 * expected[1], rtol=1e-5)


def test_without_transitions_it_is_the_crossentropy(batch):
    logits, labels = batch
    options = dict(class_weights=[0.5, 2.0, 3.0], label_smoothing=0.1)
    ours = ka.training.CRFLoss(**options)(labels, ka.blocks.ConditionalRandomField()(logits))
    theirs = ka.training.MaskedSparseCategoricalCrossentropy(**options)(labels, logits)
    np.testing.assert_allclose(float(ours), float(theirs), rtol=1e-5)


def test_ignored_positions_are_left_out_of_the_sequence(layer, batch):
    logits, labels = batch
    expected = float(ka.training.CRFLoss()(labels[:1, [0, 1, 3]], layer(logits[:1, [0, 1, 3]])))
    ignored = np.where(np.arange(4) == 2, -1, labels[:1])
    loss = ka.training.CRFLoss()(ignored, layer(logits[:1]))
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    masked = layer(logits[:1], mask=np.array([[True, True, False, True]]))
    loss = ka.training.CRFLoss()(labels[:1], masked)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_other_predictions_are_refused(batch):
    logits, labels = batch
    with pytest.raises(ValueError, match=r"shape \(2, 4, 3\).*expected this layer to be the last"):
        ka.training.CRFLoss()(labels, logits)


@pytest.mark.slow
def test_plain_fit_learns_what_no_token_shows(tmp_path):
    """In the data every second token is `B-x` although all tokens are equal."""
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(3, 2, mask_zero=True)(tokens)
    x = keras.layers.Dense(2)(x)
    model = keras.Model(tokens, ka.blocks.ConditionalRandomField(["O", "B-x"])(x))
    accuracy = ka.training.MaskedSparseCategoricalAccuracy(name="accuracy")
    model.compile(keras.optimizers.Adam(0.1), ka.training.CRFLoss(), metrics=[accuracy])
    ids = np.where(np.arange(7) < np.array([[7], [4]]), 1, 0)
    labels = np.where(ids > 0, np.arange(7) % 2, -1)
    with gradients.enabled():
        history = model.fit(ids, labels, epochs=15, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0] and history["accuracy"][-1] == 1.0
    expected = model.evaluate(ids, labels, verbose=0, return_dict=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    scores = loaded.evaluate(ids, labels, verbose=0, return_dict=True)
    assert scores == pytest.approx(expected) and scores["accuracy"] == 1.0


def test_attached_values_are_read_back():
    x = keras.ops.ones(3)
    assert keras_internals.read_attached(x, "anything") is None
    keras_internals.attach(x, "anything", "value")
    assert keras_internals.read_attached(x, "anything") == "value"
