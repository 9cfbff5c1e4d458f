"""Each test guards against a mistake found in another library that no other test covers."""

import ai_edge_litert.interpreter as litert
import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports

random = np.random.default_rng(0)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax", ka.normalizers.TopK(2)])
def test_weight_rows_sum_to_one_under_any_mask(normalizer):
    """Masking after the exponential, or dividing by sum + epsilon, makes sums less than one."""
    scores = random.normal(size=(2, 3, 5, 7)).astype("float32") - 50
    mask = random.random((2, 1, 5, 7)) < 0.3
    mask[:, :, :, 0] = True
    weights = np.asarray(ka.normalizers.get(normalizer)(scores, mask))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert np.all(weights[np.broadcast_to(~mask, weights.shape)] == 0)


@pytest.mark.parametrize("mode", ["mean", "max", "cls", "attention"])
def test_pooling_ignores_padding_in_every_mode(mode):
    """Pooling that takes its query from the last step takes it from padding in padded rows."""
    ids = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(ids)
    model = keras.Model(ids, ka.blocks.Pooling(mode)(x))
    padded, short = np.array([[3, 4, 5, 0, 0]]), np.array([[3, 4, 5]])
    np.testing.assert_allclose(model(padded), model(short), atol=1e-6)


@pytest.mark.slow
def test_causal_attention_exports_with_unknown_batch_and_length():
    """Keras's causal mask needs a Flex op when both batch size and length are unknown."""
    x = keras.Input((None, 8))
    assert_exports(
        keras.Model(x, ka.attention.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    )


@pytest.mark.slow
def test_embeddings_export_and_run_in_the_stock_runtime(tmp_path):
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    model = keras.Model(ids, ka.blocks.TokenEmbedding(20, 8, position="sinusoidal")(ids))
    ka.export.to_litert(model, tmp_path / "m.tflite")
    run = ka.export.load(tmp_path / "m.tflite")
    assert isinstance(run.interpreter, litert.Interpreter)
    tokens = np.array([[3, 4, 0]], "int32")
    (output,) = run({"token_ids": tokens}).values()
    np.testing.assert_allclose(output, model(tokens), atol=1e-5)


@pytest.mark.parametrize(
    "shape", [(1, 4, 1, 1), (1, 1, 4, 1), (4, 1, 1), (4, 1), (4,), (2, 1, 1, 1)]
)
@pytest.mark.parametrize("position", [None, "alibi"])
def test_a_bias_is_added_where_its_axis_is(shape, position):
    """keras.ops.add can add a tensor with a single axis longer than 1 along the wrong axis."""
    query, key, value = random.normal(size=(3, 2, 4, 4, 3)).astype("float32")
    bias = random.normal(size=shape).astype("float32")

    def weights(bias):
        settings = dict(normalizer="sigmoid", position=position, bias=bias)
        return np.asarray(ka.attention.attend(query, key, value, **settings)[1])

    full = np.broadcast_to(bias, (2, 4, 4, 4)).copy()
    np.testing.assert_allclose(weights(bias), weights(full), atol=1e-6)


def test_max_pooling_of_as_many_tokens_as_features():
    x = random.normal(size=(1, 4, 4)).astype("float32")
    pooled = ka.blocks.Pooling("max")(x, mask=np.array([[True, True, False, False]]))
    np.testing.assert_allclose(pooled, x[:, :2].max(1), atol=1e-6)


def test_each_head_of_size_one_has_its_own_bias():
    """Keras adds the bias of head n to all heads of token n when the sizes are equal."""
    x = random.normal(size=(2, 3, 5)).astype("float32")
    layer = ka.attention.HeadProjection((3, 1))
    layer.build((None, None, 5))
    layer.bias.assign([[1.0], [2.0], [3.0]])
    expected = np.einsum("btd,dnh->btnh", x, layer.kernel) + np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_a_mask_for_each_head_and_padding_for_each_row_are_both_kept():
    x = random.normal(size=(2, 4, 8)).astype("float32")
    per_head = random.random((2, 2, 4, 4)) < 0.7
    padding = np.array([[True, True, True, False], [True, True, False, True]])
    layer = ka.attention.MultiHeadAttention(2, 4)
    masks = dict(attention_mask=per_head, value_mask=padding)
    _, weights = layer(x, x, **masks, return_attention_scores=True)
    seen = per_head & padding[:, None, None]
    assert np.array_equal(np.asarray(weights) > 0, seen)
