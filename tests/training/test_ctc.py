"""The CTC loss compared with its definition over all paths, and with Keras."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import keras_internals
from keras_attention.training import ctc

Loss = ka.training.MaskedCTC
random = np.random.default_rng(0)


def by_definition(labels, logits, blank=0):
    """Compute -log of the summed probability of all paths that collapse to the labels."""
    probabilities = np.exp(logits.astype("float64"))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if [label for label, _ in itertools.groupby(path) if label != blank] == list(labels):
            total += np.prod([probabilities[t, c] for t, c in enumerate(path)])
    return -np.log(total)


@pytest.fixture
def batch():
    """Draw labels, logits, and the number of frames of each utterance."""
    labels = np.array([[1, 1, 2], [3, 0, 0], [2, 1, 0], [0, 0, 0]])
    return labels, random.normal(size=(4, 5, 4)).astype("float32") * 2, np.array([5, 2, 4, 3])


def masked(logits, lengths):
    logits = ops.convert_to_tensor(logits)
    keras_internals.set_mask(logits, ops.convert_to_tensor(np.arange(5) < lengths[:, None]))
    return logits


def expect(batch):
    return np.array(
        [by_definition(row[row > 0], x[:length]) for row, x, length in zip(*batch, strict=True)]
    )


@pytest.mark.parametrize("dense_labels", [False, True])
def test_equals_the_definition(batch, dense_labels, monkeypatch):
    """Compare TensorFlow's op of sparse labels, and Keras's of dense ones, for other backends."""
    if dense_labels:
        monkeypatch.setattr(ctc, "_takes_sparse_labels", lambda: False)
    labels, logits, lengths = batch
    expected = expect(batch)
    each = Loss(reduction=None)(labels, masked(logits, lengths))
    np.testing.assert_allclose(each, expected, rtol=1e-5)
    np.testing.assert_allclose(Loss()(labels, masked(logits, lengths)), expected.mean(), rtol=1e-5)
    weights = np.array([1.0, 0.0, 3.0, 0.5])
    weighed = Loss()(labels, masked(logits, lengths), weights)
    np.testing.assert_allclose(weighed, (weights * expected).mean(), rtol=1e-5)


def test_other_blank_ids_are_supported(batch):
    labels, logits, _ = batch
    moved = np.where(labels == 0, 3, labels - 1)  # the blank is the last class
    ours = Loss(3, reduction=None)(moved, np.roll(logits, -1, axis=2))
    np.testing.assert_allclose(ours, Loss(reduction=None)(labels, logits), rtol=1e-5)


def test_without_a_mask_the_loss_equals_keras(batch):
    labels, logits, _ = batch
    labels = np.repeat(labels[:1], 4, axis=0)  # Keras counts all ids as labels
    expected = keras.losses.CTC(reduction=None)(labels, logits)
    np.testing.assert_allclose(Loss(reduction=None)(labels, logits), expected, rtol=1e-5)


@pytest.mark.tensorflow
def test_gradients_equal_keras_and_are_zero_at_padding(batch):
    import tensorflow as tf

    labels, logits, lengths = batch
    variable = tf.Variable(logits)
    with tf.GradientTape(persistent=True) as tape:
        ours = tf.reduce_sum(Loss(reduction=None)(labels, masked(variable, lengths)))
        counted = (labels > 0).sum(axis=1).astype("int32")
        theirs = ops.sum(ops.ctc_loss(labels, variable, counted, lengths.astype("int32")))
    actual = tape.gradient(ours, variable)
    np.testing.assert_allclose(actual, tape.gradient(theirs, variable), atol=2e-5)
    assert not np.any(np.asarray(actual)[np.arange(5) >= lengths[:, None]])


@pytest.mark.slow
@pytest.mark.tensorflow
def test_xla_computes_the_same_loss(batch):
    """XLA lacks the op of sparse labels."""
    import tensorflow as tf

    labels, logits, lengths = batch

    @tf.function(jit_compile=True)
    def compute(logits):
        return Loss(reduction=None)(labels, masked(logits, lengths))

    np.testing.assert_allclose(compute(tf.constant(logits)), expect(batch), rtol=1e-4)


def test_an_utterance_without_alignment_has_loss_zero(batch):
    labels, logits, lengths = batch
    expected = expect(batch)
    lengths = np.array([3, 2, 0, 3])  # 1 1 2 needs four frames
    each = Loss(reduction=None)(labels, masked(logits, lengths))
    np.testing.assert_allclose(each, [0, expected[1], 0, expected[3]], rtol=1e-5, atol=1e-6)


def test_nan_logits_in_padding_leave_the_ctc_loss_finite(batch):
    labels, logits, lengths = batch
    logits[np.arange(5) >= lengths[:, None]] = np.nan
    assert np.isfinite(float(Loss()(labels, masked(logits, lengths))))


@pytest.mark.tensorflow
def test_fit_passes_the_mask_to_the_loss(batch):
    labels, logits, lengths = batch
    features = keras.Input((None, 4), name="features")
    count = keras.Input((), dtype="int32", name="lengths")
    model = keras.Model(
        {"features": features, "lengths": count}, ka.blocks.LengthMask()(features, count)
    )
    model.compile(loss=Loss())
    actual = model.evaluate({"features": logits, "lengths": lengths}, labels, verbose=0)
    np.testing.assert_allclose(actual, expect(batch).mean(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_model_learns_with_ctc():
    """Train on words of three sounds, each several frames long."""
    keras.utils.set_random_seed(0)
    labels = random.integers(1, 5, size=(64, 3))
    labels[:, 1] = labels[:, 0] % 4 + 1
    labels[:, 2] = labels[:, 1] % 4 + 1
    sounds = np.repeat(np.eye(5)[labels], 3, axis=1)
    sounds[:, 2::3] = 0  # a sound ends with a silent frame
    model = keras.Sequential([keras.Input((None, 5)), keras.layers.Dense(5)])
    model.compile(keras.optimizers.Adam(0.2), Loss())
    losses = model.fit(sounds, labels, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.3 < losses[0]
    actual = ka.blocks.GreedyCTCDecoder()(model(sounds))
    np.testing.assert_array_equal(np.asarray(actual)[:, :3], labels)


def test_invalid_blank_ids_are_refused():
    with pytest.raises(ValueError, match="blank_id=-1.*at least 0"):
        Loss(blank_id=-1)
    config = Loss(2).get_config()
    assert Loss.from_config(config).get_config() == config
