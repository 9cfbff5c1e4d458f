"""Mistakes that other libraries made, each once here, where no other test already asks.

The numbers of traps 1-6, 8-12 and 14 are in tests/attention/test_multi_head.py; those of positions
(15-26) in tests/positions; 39, 40, 43 and 44 are told apart in tests/export: what needs other than
built-in ops is refused (test_errors), dropped weights are noticed, fixed shapes are fixed
(test_litert), int8 wants a mild mask constant (test_builders).
"""

import ai_edge_litert.interpreter as litert
import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports

random = np.random.default_rng(0)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax", ka.normalizers.TopK(2)])
def test_trap_7_rows_sum_to_one_whatever_is_masked(normalizer):
    """Masking after the exponential, or dividing by sum + epsilon, leaves rows short of one."""
    scores = random.normal(size=(2, 3, 5, 7)).astype("float32") - 50
    mask = random.random((2, 1, 5, 7)) < 0.3
    mask[:, :, :, 0] = True
    weights = np.asarray(ka.normalizers.get(normalizer)(scores, mask))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert np.all(weights[np.broadcast_to(~mask, weights.shape)] == 0)


@pytest.mark.parametrize("mode", ["mean", "max", "cls", "attention"])
def test_trap_13_padding_is_not_pooled(mode):
    """A pooling that asks with the last step asks, after padding, with padding."""
    ids = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(ids)
    model = keras.Model(ids, ka.blocks.Pooling(mode)(x))
    padded, short = np.array([[3, 4, 5, 0, 0]]), np.array([[3, 4, 5]])
    np.testing.assert_allclose(model(padded), model(short), atol=1e-6)


def test_trap_38_causal_attention_exports_at_any_length():
    """Keras's causal mask needs a Flex op as soon as batch and length are both unknown."""
    x = keras.Input((None, 8))
    assert_exports(
        keras.Model(x, ka.attention.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    )


def test_traps_41_and_42_embeddings_export_and_run_in_the_stock_runtime(tmp_path):
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    model = keras.Model(ids, ka.blocks.TokenEmbedding(20, 8, position="sinusoidal")(ids))
    ka.export.to_litert(model, tmp_path / "m.tflite")
    run = ka.export.load(tmp_path / "m.tflite")
    assert isinstance(run.interpreter, litert.Interpreter)
    tokens = np.array([[3, 4, 0]], "int32")
    (output,) = run({"token_ids": tokens}).values()
    np.testing.assert_allclose(output, model(tokens), atol=1e-5)
