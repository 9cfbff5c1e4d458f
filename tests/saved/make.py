"""Saves models of version 0.1.0 of November 2026, with their inputs and outputs.

Later versions must load these files. They are written once, by `python -m tests.saved.make`. Do not
write a file again: saved by a later version, it no longer tests anything.
"""

import pathlib

import keras
import numpy as np

import keras_attention as ka
from tests.stacks import make_writer

HERE = pathlib.Path(__file__).parent
WIDTH, HEADS = 16, 4


def every_layer():
    """Build a model of every attention layer and most parts, one after the other."""
    x = inputs = keras.Input((6, WIDTH), name="features")
    common = {"num_heads": HEADS, "key_dim": 4}
    for layer in (
        ka.attention.MultiHeadAttention(
            **common,
            num_key_value_heads=2,
            qk_norm="rms_norm",
            sink=True,
            num_memory_slots=2,
            use_gate=True,
            mask=ka.masks.Causal() & ka.masks.Window(3) | ka.masks.Prefix(2),
            position=["rotary", "alibi"],
            normalizer=ka.normalizers.Softmax(soft_cap=20.0),
        ),
        ka.attention.MultiHeadAttention(
            **common, score="additive", normalizer="entmax", position="shaw", talking_heads=True
        ),
        ka.attention.MultiHeadAttention(
            **common,
            score=ka.scores.Cosine(),
            normalizer=ka.normalizers.TopK(3),
            position=ka.positions.Rotary(scaling=ka.positions.scalings.YaRN(4, 32)),
        ),
        ka.attention.DifferentialAttention(2, 4, mask="causal", position="relative_bias"),
        ka.attention.ResidualAttention(**common, position="disentangled"),
        ka.attention.MemorizingAttention(**common, memory_length=6, num_neighbors=2),
    ):
        x = x + layer(x, x)
    x = x + ka.attention.LatentAttention(HEADS, 4, latent_dim=6, rotary_dim=2)(x, x)
    x = x + ka.attention.LinearAttention(**common, mask="causal")(x, x)
    x = x + ka.attention.Attention(score="bilinear")([x, x])
    for block in (
        ka.blocks.EncoderBlock(
            ka.attention.MultiHeadAttention(**common),
            ka.blocks.FeedForward(24, "swiglu"),
            norm="sandwich",
        ),
        ka.blocks.ConformerBlock(
            ka.blocks.FeedForward(24),
            ka.attention.MultiHeadAttention(**common),
            ka.blocks.FeedForward(24),
            ka.blocks.ConvolutionModule(3),
        ),
    ):
        x = block(x)
    return keras.Model(inputs, ka.blocks.Pooling("attention")(x))


def translator():
    """Build a recurrent translator whose decoder attends to the source."""
    return ka.models.seq2seq_recurrent(
        30, 25, hidden_dim=WIDTH, embedding_dim=8, num_layers=1, attention="luong"
    )


def writer():
    """Build a language model with grouped-query attention and rotary positions."""
    return make_writer(
        40,
        2,
        HEADS,
        WIDTH,
        24,
        num_key_value_heads=2,
        mask=ka.masks.Causal() & ka.masks.Window(4),
        position="rotary",
        normalization="rms_norm",
        activation="swiglu",
    )


MODELS = {"every_layer": every_layer, "translator": translator, "writer": writer}


def main():
    for seed, (name, make) in enumerate(MODELS.items()):
        keras.utils.set_random_seed(seed)
        model = make()
        random = np.random.default_rng(seed)
        for variable in model.weights:
            if variable.dtype == "float32":
                variable.assign(variable + 0.05 * random.normal(size=variable.shape))
        arrays = [
            random.integers(1, 25, (2, 6)).astype("int32")
            if x.dtype == "int32"
            else random.normal(size=(2, *x.shape[1:])).astype("float32")
            for x in model.inputs
        ]
        for x in arrays:
            if x.dtype == "int32":
                x[0, -2:] = 0  # padding
        named = dict(zip(map(_name, model.inputs), arrays, strict=True))
        model.save(HERE / f"{name}.keras")
        answer = keras.ops.convert_to_numpy(model(named))
        np.savez_compressed(HERE / f"{name}.npz", answer=answer, **named)
        print(name, model.count_params(), float(np.abs(answer).max()))


def _name(tensor):
    return tensor.name


if __name__ == "__main__":
    main()
