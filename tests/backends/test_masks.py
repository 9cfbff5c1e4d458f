"""Implicit masks arrive on every backend, also in compiled functions."""

import keras
import numpy as np

import keras_attention as ka
from tests.backends.marks import slow_on_tensorflow

random = np.random.default_rng(0)
SMALL = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=6)


def assert_padding_is_not_seen(model, inputs, longer):
    expected = keras.ops.convert_to_numpy(model(inputs))
    for actual in (model(longer), model.predict(longer, verbose=0)):
        actual = keras.ops.convert_to_numpy(actual)[:, : expected.shape[1]]
        np.testing.assert_allclose(actual, expected, atol=1e-5)


@slow_on_tensorflow
def test_masks_of_source_and_target():
    model = ka.models.seq2seq_transformer(20, **SMALL)
    ids = {name: random.integers(1, 20, (2, 4)) for name in ("source_ids", "target_ids")}
    longer = {name: np.pad(x, [(0, 0), (0, 2)]) for name, x in ids.items()}
    assert_padding_is_not_seen(model, ids, longer)


def test_masks_beside_positions():
    """Check a block that is called on two tensors: Keras does not fill in its mask."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    where = keras.Input((None,), dtype="int32", name="where")
    x = ka.blocks.TokenEmbedding(20, 8)(ids)
    attention = ka.attention.MultiHeadAttention(2, 4, position="alibi")
    x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(6))(x, positions=where)
    model = keras.Model({"ids": ids, "where": where}, x)
    inputs = {"ids": random.integers(1, 20, (2, 4)), "where": np.tile(np.arange(4), (2, 1))}
    longer = {name: np.pad(x, [(0, 0), (0, 2)]) for name, x in inputs.items()}
    assert_padding_is_not_seen(model, inputs, longer)
