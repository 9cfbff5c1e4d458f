"""Models that one backend saves and another loads. As a program it saves them in a folder."""

import pathlib
import sys

import keras
import numpy as np

import keras_attention as ka
from tests.stacks import make_writer


def parts():
    """Attention, positions, masks and blocks of many kinds."""
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(30, 12, position=ka.positions.Learned(16))(tokens)
    attention = ka.attention.MultiHeadAttention(
        4,
        3,
        num_key_value_heads=2,
        qk_norm="rms_norm",
        sink=True,
        mask=ka.masks.Causal() & (ka.masks.Window(4) | ka.masks.Global(1)),
        position=[ka.positions.Shaw(3), "alibi"],
    )
    x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(10, "swiglu"), norm="sandwich")(x)
    attention = ka.attention.DifferentialAttention(2, 4, position="rotary", mask="causal")
    x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(10))(x)
    x = ka.blocks.ConformerBlock(
        ka.blocks.FeedForward(10, "silu"),
        ka.attention.MultiHeadAttention(2, 4, score="additive", normalizer="entmax"),
        ka.blocks.FeedForward(10, "silu"),
        ka.blocks.ConvolutionModule(3),
    )(x)
    return keras.Model(tokens, ka.blocks.Pooling("attention")(x))


def labeler():
    return ka.models.sequence_labeler(
        30, 5, num_layers=1, num_heads=2, hidden_dim=12, mask=ka.masks.Window(4), position="rotary"
    )


def vision():
    return ka.models.vision_transformer(
        (8, 8), 5, patch_size=4, num_channels=1, num_layers=1, num_heads=2, hidden_dim=12
    )


def language():
    return make_writer(30, 1, 2, 12, 10, num_key_value_heads=1)


def translator():
    """Build a model with one token table in three places, and one distance table in two."""
    size = dict(num_layers=2, num_heads=2, hidden_dim=12, intermediate_dim=10)
    return ka.models.encoder_decoder(30, structure="t5", **size)


MODELS = {model.__name__: model for model in (parts, labeler, vision, language, translator)}


def inputs(name):
    random = np.random.default_rng(0)
    if name == "vision":
        return random.random((3, 8, 8, 1), dtype="float32")
    tokens = random.integers(1, 30, size=(3, 11)).astype("int32")
    tokens[1, 7:] = 0  # padding
    if name == "translator":
        return {"source_ids": tokens, "target_ids": tokens[:, :5]}
    return tokens


def save(folder):
    random = np.random.default_rng(1)
    for name, make in MODELS.items():
        model = make()
        for weight in model.trainable_weights:
            weight.assign(random.normal(size=weight.shape, scale=0.3))
        model.save(folder / f"{name}.keras")
        model.save_weights(folder / f"{name}.weights.h5")
        output = keras.ops.convert_to_numpy(model(inputs(name)))
        np.save(folder / f"{name}.npy", output)


if __name__ == "__main__":
    save(pathlib.Path(sys.argv[1]))
