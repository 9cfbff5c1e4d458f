"""Blocks with any layer that is called on a query and a value."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports
from tests.grids import thinned

random = np.random.default_rng(0)
B, T, D = 2, 5, 12
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])


@keras.saving.register_keras_serializable(package="tests")
class MeanOfTokens(keras.layers.Layer):
    """A user's own attention, which only takes the padding mask of values."""

    def call(self, query, value, value_mask=None):
        mean = ka.blocks.Pooling("mean")(value, mask=value_mask)
        return query + keras.ops.expand_dims(mean, axis=1)


ATTENTIONS = {
    "MultiHeadAttention": lambda: ka.attention.MultiHeadAttention(3, 4, position="alibi"),
    "grouped": lambda: ka.attention.MultiHeadAttention(4, 3, num_key_value_heads=2, use_gate=True),
    "Keras's MultiHeadAttention": lambda: keras.layers.MultiHeadAttention(3, 4),
    "Keras's GroupedQueryAttention": lambda: keras.layers.GroupQueryAttention(4, 4, 2),
    "DifferentialAttention": lambda: ka.attention.DifferentialAttention(3, 4, depth=1),
    "LinearAttention": lambda: ka.attention.LinearAttention(3, 4),
    "LatentAttention": lambda: ka.attention.LatentAttention(3, 4, latent_dim=5, rotary_dim=2),
    "a user's own": MeanOfTokens,
}
BLOCKS = {
    "EncoderBlock": lambda attention: ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(9)),
    "ParallelBlock": lambda attention: ka.blocks.ParallelBlock(
        attention, ka.blocks.FeedForward(9), norm="post"
    ),
    "ConformerBlock": lambda attention: ka.blocks.ConformerBlock(
        ka.blocks.FeedForward(9),
        attention,
        ka.blocks.FeedForward(9),
        ka.blocks.ConvolutionModule(3),
    ),
}


def model_of(attention, block):
    tokens = keras.Input((None, D), name="tokens")
    masked = keras.layers.Masking(100.0)(tokens)
    return keras.Model(tokens, ka.blocks.Pooling("mean")(block(attention)(masked)))


def test_keras_attention_does_not_remove_the_mask_of_the_inputs():
    """Keras's attention removes the mask from its input, which the feed-forward also reads."""
    x = keras.layers.Masking(100.0)(np.where(PADDING[..., None], X, 100.0).astype("float32"))
    BLOCKS["ParallelBlock"](keras.layers.MultiHeadAttention(3, 4))(x)
    np.testing.assert_array_equal(x._keras_mask, PADDING)


@pytest.mark.slow
@pytest.mark.parametrize("block, attention", thinned(BLOCKS, ATTENTIONS))
def test_padding_changes_nothing(block, attention, tmp_path):
    """Check that every attention gets the implicit mask, also after saving."""
    model = model_of(ATTENTIONS[attention](), BLOCKS[block])
    padded = np.where(PADDING[..., None], X, 100.0).astype("float32")
    expected = [model(X[b : b + 1, : PADDING[b].sum()])[0] for b in range(B)]
    np.testing.assert_allclose(model(padded), expected, atol=1e-4)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(padded), expected, atol=1e-4)


# LiteRT lacks the Einsum over five axes of Keras's GroupQueryAttention. The contract also exports
# our own layers and a block of one.
OTHERS = ["Keras's MultiHeadAttention", "a user's own"]
OURS = ["grouped", *(name for name in ATTENTIONS if name in ka.layers.__all__)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "attention", OTHERS + [pytest.param(name, marks=pytest.mark.slow) for name in OURS]
)
def test_exports(attention):
    tokens = keras.Input((None, D), name="tokens")
    block = BLOCKS["EncoderBlock"](ATTENTIONS[attention]())
    assert_exports(keras.Model(tokens, block(tokens)))


def test_blocks_refuse_arguments_their_attention_does_not_take():
    block = BLOCKS["EncoderBlock"](MeanOfTokens())
    with pytest.raises(ValueError, match="MeanOfTokens has no query_positions, value_positions"):
        block(X, positions=np.arange(T))
    with pytest.raises(ValueError, match="MeanOfTokens has no attention_mask"):
        block(X, attention_mask=np.ones((1, T, T), bool))
    with pytest.raises(ValueError, match="MultiHeadAttention has no segment_ids"):
        BLOCKS["ParallelBlock"](keras.layers.MultiHeadAttention(3, 4))(
            X, segment_ids=np.ones((B, T), "int32")
        )
