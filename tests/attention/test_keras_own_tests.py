"""Keras's own tests of its MultiHeadAttention, with ours in its place."""

import keras
import pytest

import keras_attention as ka

theirs = pytest.importorskip("keras.src.layers.attention.multi_head_attention_test")

pytestmark = pytest.mark.filterwarnings("default")  # what Keras's tests warn about is Keras's


class Layers:
    """`keras.src.layers`, but for the one layer under test."""

    MultiHeadAttention = ka.attention.MultiHeadAttention

    def __getattr__(self, name):
        return getattr(keras.src.layers, name)


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch):
    monkeypatch.setattr(theirs, "layers", Layers())


class TestKerasOwnTests(theirs.MultiHeadAttentionTest):
    """All of them run; the two about `flash_attention` skip themselves on TensorFlow."""


del theirs.MultiHeadAttentionTest  # or pytest collects it here a second time, without ours
