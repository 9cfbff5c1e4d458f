"""`ResetMemory` in fit, evaluate and predict over the segments of a text."""

import keras
import numpy as np
import pytest

import keras_attention as ka

TEXT = np.random.default_rng(0).integers(1, 9, size=61)
TOKENS, FOLLOWING = ka.data.contiguous_segments(TEXT, batch_size=2, segment_length=5)


def compiled(batch_size):
    keras.utils.set_random_seed(0)
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, dropout=0.0)
    labeler = ka.models.sequence_labeler(9, 9, **sizes, mask="causal", position="rotary")
    model = ka.attention.with_memory(labeler, 6, batch_size)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model


def explicit_losses(model, epochs):
    """Train with an explicit memory, and return the mean loss of each epoch."""
    import tensorflow as tf

    layer = model.get_layer("recurrence")
    again = ka.attention.SegmentRecurrence(layer.model, 6)
    losses = []
    for _ in range(epochs):
        memory, total = None, 0.0
        for i in range(0, len(TOKENS), 2):
            with tf.GradientTape() as tape:
                logits, memory = again(TOKENS[i : i + 2], memory, training=True)
                loss = model.loss(FOLLOWING[i : i + 2], logits)
            weights = model.trainable_variables
            gradients = tape.gradient(loss, [w.value for w in weights])
            model.optimizer.apply(gradients, weights)
            total += float(loss)
        losses.append(total / (len(TOKENS) // 2))
    return losses


@pytest.mark.slow
def test_fit_carries_the_memory_and_forgets_it_between_epochs():
    model = compiled(batch_size=2)
    reset = ka.training.ResetMemory()
    arguments = dict(batch_size=2, shuffle=False, callbacks=[reset], verbose=0)
    history = model.fit(
        TOKENS, FOLLOWING, epochs=2, validation_data=(TOKENS, FOLLOWING), **arguments
    )
    by_hand = explicit_losses(compiled(batch_size=2), epochs=2)
    np.testing.assert_allclose(history.history["loss"], by_hand, rtol=1e-4)


def test_evaluate_and_predict_start_with_an_empty_memory():
    model = compiled(batch_size=2)
    reset = dict(batch_size=2, verbose=0, callbacks=[ka.training.ResetMemory()])
    first = model.predict(TOKENS, **reset)
    np.testing.assert_allclose(model.predict(TOKENS, **reset), first, atol=1e-6)
    without = model.predict(TOKENS, batch_size=2, verbose=0)
    assert not np.allclose(without[:2], first[:2], atol=1e-3)  # the memory held the end of the text
    losses = [model.evaluate(TOKENS, FOLLOWING, **reset) for _ in range(2)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def test_models_without_memory_do_not_change():
    reset = ka.training.ResetMemory()
    x = keras.Input((None, 4))
    attention = ka.attention.MultiHeadAttention(1, 2)
    inner = keras.Model(x, attention(x, x))
    reset.set_model(keras.Model(x, ka.attention.SegmentRecurrence(inner, 3)(x)[0]))
    reset.on_epoch_begin(0)
