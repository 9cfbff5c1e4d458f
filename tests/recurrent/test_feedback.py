"""A decoder with its predictions as inputs, compared with a call for each step."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.recurrent.feedback import predicted_ids
from tests import gradients
from tests.recurrent import definition
from tests.recurrent.definition import B, E, T

V = 19


def made(feedback="argmax", **kwargs):
    cell = ka.recurrent.AttentionCell(keras.layers.GRUCell(5), coverage=True)
    layer = ka.recurrent.FeedbackDecoder(
        ka.blocks.TokenEmbedding(V, 3),
        ka.recurrent.RecurrentDecoder(cell, coverage_loss=0.5),
        keras.layers.Dense(V),
        feedback=feedback,
        **kwargs,
    )
    layer.build((None, None), (None, None, E))
    return definition.drawn(layer)


def inputs():
    _, encoded, mask = definition.tensors()
    ids = np.random.default_rng(2).integers(1, V, (B, T))
    ids[1, 3:] = 0
    return ids, encoded, mask


def forced(layer, ids, encoded, mask, **kwargs):
    return np.asarray(layer(ids, encoded, encoded_mask=mask, **kwargs))


def test_target_tokens_equal_teacher_forcing():
    layer, (ids, encoded, mask) = made(), inputs()
    inside = forced(layer, ids, encoded, mask, training=True)
    loss = layer.losses
    plain = forced(layer, ids, encoded, mask)
    np.testing.assert_allclose(inside[ids > 0], plain[ids > 0], atol=1e-5)
    layer.decoder(layer.embedding(ids), encoded, encoded_mask=mask, training=True)
    np.testing.assert_allclose(loss[0], layer.decoder.losses[0], rtol=1e-5)


def test_without_target_tokens_it_uses_its_predictions():
    """Compare with teacher forcing of the predictions, collected step by step."""
    layer, (ids, encoded, mask) = made(), inputs()
    layer.teacher_forcing.assign(0.0)
    fed = forced(layer, ids, encoded, mask, training=True)
    heard = ids.copy()
    for t in range(1, T):
        logits = forced(layer, heard, encoded, mask)[:, t - 1]
        heard[:, t] = np.where(ids[:, t] > 0, np.argmax(logits[:, 1:], axis=-1) + 1, 0)
    assert not np.array_equal(heard, ids)
    np.testing.assert_allclose(
        fed[ids > 0], forced(layer, heard, encoded, mask)[ids > 0], atol=1e-5
    )


def test_half_of_the_inputs_are_target_tokens():
    """Check the logits after each token, which is drawn separately."""
    layer = made(seed=1)
    layer.teacher_forcing.assign(0.5)
    ids = np.random.default_rng(2).integers(1, V, (400, 2))
    encoded = np.random.default_rng(3).normal(size=(400, 3, E)).astype("float32")
    logits = np.asarray(layer(ids, encoded, training=True))
    plain = np.asarray(layer(ids, encoded))
    np.testing.assert_allclose(logits[:, 0], plain[:, 0], atol=1e-5)
    is_target = np.isclose(logits[:, 1], plain[:, 1], atol=1e-5).all(axis=1)
    assert 140 < is_target.sum() < 260


def test_sampled_tokens_follow_their_probabilities():
    logits = np.log(np.array([0.5, 0.1, 0.2, 0.7], "float32"))  # the first is padding
    uniform = (np.arange(1000, dtype="float32") + 0.5) / 1000
    ids = predicted_ids(np.broadcast_to(logits, (1000, 4)), uniform)
    np.testing.assert_array_equal(np.bincount(ids), [0, 100, 200, 700])
    np.testing.assert_array_equal(predicted_ids(logits[None]), [3])
    edge = predicted_ids(np.zeros((1, 4), "float32"), np.array([1 - 1e-7], "float32"))
    np.testing.assert_array_equal(edge, [3])


@pytest.mark.parametrize("feedback", ["argmax", "sample"])
def test_every_weight_has_a_gradient(feedback):
    layer, (ids, encoded, mask) = made(feedback, dropout=0.2), inputs()
    layer.teacher_forcing.assign(0.5)

    def loss():
        logits = layer(ids, encoded, encoded_mask=mask, training=True)
        return keras.ops.sum(keras.ops.log_softmax(logits)[:, :, 1]) + layer.losses[0]

    _, computed = gradients.value_and_gradients(loss, variables=layer.trainable_weights)
    for weight, gradient in zip(layer.trainable_weights, computed, strict=True):
        assert np.any(np.asarray(gradient)), weight.path


def test_without_feedback_there_is_no_teacher_forcing_weight():
    layer = made(feedback=None)
    assert layer.teacher_forcing is None
    ids, encoded, mask = inputs()
    training = forced(layer, ids, encoded, mask, training=True)
    np.testing.assert_allclose(training, forced(layer, ids, encoded, mask), atol=1e-6)


def test_feedback_decoder_refuses_unknown_feedback_and_plain_layers():
    with pytest.raises(ValueError, match="feedback='beam'.*'argmax', 'sample'"):
        made("beam")
    with pytest.raises(ValueError, match="expected a keras_attention.recurrent.RecurrentDecoder"):
        ka.recurrent.FeedbackDecoder(
            keras.layers.Embedding(3, 3), keras.layers.GRU(3), keras.layers.Dense(3)
        )
