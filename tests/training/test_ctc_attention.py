"""The sum of CTC and cross-entropy, compared with both losses."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import keras_internals

random = np.random.default_rng(0)
B, T, U, V = 3, 11, 5, 7
FRAMES = np.array([11, 8, 9])
LABELS = np.array([[3, 5, 6, 2, -1], [4, 2, -1, -1, -1], [3, 3, 1, 4, 2]])
HEARD = np.array([[3, 5, 6], [4, 0, 0], [3, 3, 1]])


def draw():
    logits = random.normal(size=(B, U, V)).astype("float32")
    frames = ka.blocks.LengthMask()(random.normal(size=(B, T, V)).astype("float32"), FRAMES)
    return {"logits": logits, "ctc_logits": frames}


@pytest.mark.parametrize("weight, smoothing", [(0.3, 0.0), (1.0, 0.0), (0.0, 0.2)])
def test_the_loss_is_the_weighted_sum(weight, smoothing):
    predicted = draw()
    loss = ka.training.CTCAttention(weight, smoothing, reduction=None)
    actual = loss({"logits": LABELS, "ctc_logits": HEARD}, predicted)
    ctc = np.asarray(ka.training.MaskedCTC(reduction=None)(HEARD, predicted["ctc_logits"]))
    expected = []
    for row, labels in zip(predicted["logits"], LABELS, strict=True):
        shares = row - np.log(np.exp(row).sum(axis=-1, keepdims=True))
        best = (1 - smoothing) * shares[np.arange(U), labels] + smoothing * shares.mean(axis=-1)
        expected.append(-best[labels >= 0].sum())
    np.testing.assert_allclose(actual, weight * ctc + (1 - weight) * np.array(expected), rtol=1e-4)


def test_masked_tokens_do_not_count():
    """Use the mask of the decoder's logits."""
    predicted, loss = draw(), ka.training.CTCAttention(0.3)
    whole = {"logits": np.abs(LABELS), "ctc_logits": HEARD}
    logits = ops.convert_to_tensor(predicted["logits"])
    keras_internals.set_mask(logits, ops.convert_to_tensor(LABELS >= 0))
    actual = loss(whole, {**predicted, "logits": logits})
    expected = loss({"logits": LABELS, "ctc_logits": HEARD}, predicted)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_metrics_read_the_decoder():
    predicted = draw()
    truth = {"logits": predicted["logits"].argmax(axis=-1), "ctc_logits": HEARD}
    truth["logits"][0, 1] += 1
    for metric, expected in (
        (ka.training.DecoderAccuracy(), 14 / 15),
        (ka.training.DecoderSequenceAccuracy(), 2 / 3),
    ):
        metric.update_state(truth, predicted)
        assert float(metric.result()) == pytest.approx(expected)


def test_the_loss_round_trip():
    loss = ka.training.CTCAttention(0.2, 0.1)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert (again.ctc_weight, again.label_smoothing) == (0.2, 0.1)
    with pytest.raises(ValueError, match="ctc_weight=1.5"):
        ka.training.CTCAttention(1.5)
