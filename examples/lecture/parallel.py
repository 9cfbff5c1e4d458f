"""An RNN computes one step after another, attention computes all positions at once.

    python examples/lecture/parallel.py [--quick] [--output FOLDER]

A GRU layer and a Transformer block of width 64 read a batch of 4 sequences of length T. The script
measures the time of a forward pass and of a training step, in turns. Times are medians of 7 rounds.

Equation: RNN: hₜ = f(hₜ₋₁, xₜ), T steps in turn. Attention: Y = softmax(QKᵀ / √H) V, one step.

Refuted if: the GRU took less time than attention. If it does so at some lengths, the claim holds in
part.

Classes: `ka.recurrent.RecurrentEncoder`, `ka.blocks.EncoderBlock`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762), [Cho 2014](https://arxiv.org/abs/1406.1078)

Caption: Time against sequence length, for a forward pass (left) and a training step (right).

Try this: add 4096 to `LENGTHS`. Attention then computes 16 times as many scores as at 1024, and the
GRU 4 times as many steps.
"""

import functools

import keras
import lesson
import numpy as np

import keras_attention as ka

WIDTH, BATCH, LENGTHS, ROUNDS = 64, 4, (16, 64, 256, 1024), 7
PASSES, KINDS = ("forward pass", "training step"), ("GRU", "attention")


def run(quick):
    lengths, rounds = (LENGTHS[:1], 1) if quick else (LENGTHS, ROUNDS)
    x = keras.Input((None, WIDTH))
    gru = ka.recurrent.RecurrentEncoder(keras.layers.GRUCell(WIDTH), bidirectional=False)
    attention = ka.attention.MultiHeadAttention(4, WIDTH // 4)
    block = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(WIDTH))
    models = keras.Model(x, gru(x)[0]), keras.Model(x, block(x))
    for model in models:
        model.compile("sgd", "mse", run_eagerly=quick)
    times = []
    for length in lengths:
        x = np.random.default_rng(0).normal(size=(BATCH, length, WIDTH)).astype("float32")
        forward = [functools.partial(model.predict_on_batch, x) for model in models]
        training = [functools.partial(model.train_on_batch, x, x) for model in models]
        times.append(lesson.clock([*forward, *training], rounds).reshape(rounds, 2, 2))
    times = np.transpose(times, (2, 0, 1, 3))  # (passes, lengths, rounds, models)
    ratios, medians = times[..., 0] / times[..., 1], np.median(times, axis=2)
    rows = []
    for p, t in np.ndindex(2, len(lengths)):
        row = {"pass": PASSES[p], "T": lengths[t], "GRU (ms)": round(medians[p, t, 0], 1)}
        row |= {"attention (ms)": round(medians[p, t, 1], 1)}
        rows.append(row | {"GRU / attention": lesson.format_spread(ratios[p, t])})

    def draw(figure):
        for axes, name, pair in zip(figure.subplots(1, 2), PASSES, medians, strict=True):
            for kind, values in zip(KINDS, pair.T, strict=True):
                axes.plot(lengths, values, label=kind)
            axes.set(xscale="log", yscale="log", xlabel="length T", ylabel=f"{name} (ms)")
        axes.legend()

    ratio = np.median(ratios, axis=2)  # (passes, lengths)
    finding = ""
    for t, length in list(enumerate(lengths))[-2:]:
        finding += (
            f"At T = {length}, the GRU takes {ratio[0, t]:.1f} times as long as attention in a "
        )
        finding += f"forward pass, and {ratio[1, t]:.1f} times in a training step (medians). "
    finding += f"Attention computes T² scores, which is much work at T = {lengths[-1]}."
    verdict = 0 if ratio.min() > 1 else 1 if np.median(ratio) > 1 else 2
    return lesson.Result(rows, draw, finding, lesson.VERDICTS[verdict])


if __name__ == "__main__":
    lesson.main(run)
