"""Rematerialized stacks on TensorFlow compute activations twice for gradients."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.export.helpers import assert_exports

X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


def stack(**kwargs):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    x = keras.Input((None, 8))
    encoder = ka.models.TransformerEncoder.of_size(
        2, 2, 8, 12, activation="tanh", dropout=0.2, attention_dropout=0.2
    )
    return keras.Model(x, dataclasses.replace(encoder, **kwargs)(x))


def trace(function):
    """Return the kinds of operations in the graph of a function of X, and its result."""
    traced = tf.function(function, autograph=False).get_concrete_function(tf.constant(X))
    return sorted(op.type for op in traced.graph.get_operations()), traced(tf.constant(X))


def differentiate(model):
    def compute(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)))
        return loss, tape.gradient(loss, [v.value for v in model.trainable_variables])

    return trace(compute)


@pytest.mark.slow
def test_activations_are_computed_again_for_the_gradients():
    plain, model = stack(), stack(remat=True)
    kinds, (loss, gradients) = differentiate(plain)
    kinds_again, (same_loss, same_gradients) = differentiate(model)
    np.testing.assert_allclose(same_loss, loss, rtol=1e-6)
    for one, other in zip(same_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert kinds_again.count("Tanh") == 2 * kinds.count("Tanh") == 4
    seeds = [
        [v.numpy().tolist() for v in each.variables if "seed_generator" in v.path]
        for each in (plain, model)
    ]
    assert seeds[0] == seeds[1] and {count for _, count in seeds[0]} == {1}


@pytest.mark.slow
def test_inference_and_recording_compute_activations_once():
    plain, model = stack(), stack(remat=True)
    assert trace(plain)[0] == trace(model)[0]

    def record(model):
        def run(x):
            with ka.visualization.record_attention(model):
                return model(x, training=True)

        return run

    assert trace(record(plain))[0] == trace(record(model))[0]


@pytest.mark.slow
def test_exports_equal_those_of_a_plain_stack():
    assert assert_exports(stack(remat=True)).ops == assert_exports(stack()).ops
