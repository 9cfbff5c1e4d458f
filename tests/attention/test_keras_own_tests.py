"""Keras's own tests of its MultiHeadAttention, run with ours."""

import keras
import pytest

import keras_attention as ka

theirs = pytest.importorskip("keras.src.layers.attention.multi_head_attention_test")

pytestmark = pytest.mark.filterwarnings("default")  # warnings in Keras's tests are Keras's


class Layers:
    """`keras.src.layers` with our layer in place of the tested one."""

    MultiHeadAttention = ka.attention.MultiHeadAttention

    def __getattr__(self, name):
        return getattr(keras.src.layers, name)


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch):
    monkeypatch.setattr(theirs, "layers", Layers())


class TestKerasOwnTests(theirs.MultiHeadAttentionTest):
    """Keras's test case. Two tests of `flash_attention` skip themselves on TensorFlow."""


del theirs.MultiHeadAttentionTest  # otherwise pytest would also collect it with Keras's layer
