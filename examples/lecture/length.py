"""Fixed positions reach lengths never seen, learned ones do not, and relative ones reach furthest.

    python examples/lecture/length.py [--quick] [--output FOLDER]

Each token is one of 4 letters with a digit. Its label is the digit of the last earlier token with
its letter, which is 4 tokens away on average. Encoders with one layer of width 32 learn this from
texts of 16 tokens and are tested on up to 128. Training changes 16 of the 128 learned positions.

Equation: q_i · k_j is a function of i and j (sinusoids, learned), or of i - j (relative)

Refuted if: sinusoids fell as far as learned positions beyond 16 tokens, or relative ones fell too.

Classes: `ka.positions.Sinusoidal`, `ka.positions.Learned`, `ka.positions.RelativeBias`

Papers: [Press 2022](https://arxiv.org/abs/2108.12409)

Caption: Accuracy (%, mean of three seeds) on texts of each length. Guessing gives 25 %.

Try this: set `TRAINED = 32`. Learned positions then reach 32 tokens, and fall to about 64 % at 64.
"""

import lesson
import numpy as np

import keras_attention as ka

TRAINED, LENGTHS, KINDS = 16, (16, 32, 64, 128), 4
POSITIONS = {
    "sinusoids": ka.positions.Sinusoidal,
    "learned": lambda: ka.positions.Learned(LENGTHS[-1]),
    "ALiBi": ka.positions.ALiBi,
    "rotary": ka.positions.Rotary,
    "T5": lambda: ka.positions.RelativeBias(bidirectional=False),
    "Shaw": ka.positions.Shaw,
    "none": lambda: None,
}
LOSS = ka.training.MaskedSparseCategoricalCrossentropy()


def make_texts(count, length, seed):
    letters, digits = np.random.default_rng(seed).integers(KINDS, size=(2, count, length))
    same = letters[:, :, None] == letters[:, None]
    last = np.where(np.tril(same, -1), range(length), -1).max(axis=2)
    return letters * KINDS + digits + 1, np.where(last < 0, -1, np.take_along_axis(digits, last, 1))


def build(position):
    size = dict(num_layers=1, num_heads=8, hidden_dim=32, intermediate_dim=64, dropout=0.0)
    mask = ka.masks.Causal() & ~ka.masks.Window(1)  # earlier tokens
    return ka.models.sequence_labeler(KINDS**2 + 1, KINDS, position=position, mask=mask, **size)


def run(quick):
    tests = [make_texts((160 if quick else 3200) // n, n, seed=1) for n in LENGTHS]

    def measure(model):
        return [100 * np.mean((np.argmax(model(x), -1) == y)[y >= 0]) for x, y in tests]

    builds = {name: lambda make=make: build(make()) for name, make in POSITIONS.items()}
    settings = dict(epochs=3, learning_rate=1e-2, decay=True, loss=LOSS)
    measured = lesson.compare(builds, measure, *make_texts(5000, TRAINED, 0), quick, **settings)
    rows = lesson.tabulate("positions", measured, {i: f"{n} tokens" for i, n in enumerate(LENGTHS)})

    def draw(figure):
        axes = figure.add_subplot(xlabel="tokens in the text", ylabel="accuracy (%)", ylim=(0, 105))
        means = np.transpose([x.mean(axis=0) for x in measured.values()])
        axes.semilogx(LENGTHS, means, base=2, label=list(measured))
        axes.set_xticks(LENGTHS, LENGTHS)
        figure.legend(loc="outside right")

    last = {name: x[:, -1].mean() for name, x in measured.items()}
    ranked = ", ".join(f"{name} {last[name]:.0f} %" for name in sorted(last, key=last.get)[::-1])
    finding = f"Trained on {TRAINED} tokens and tested on {LENGTHS[-1]}: {ranked}."
    relative = min(last.get(x, 0) for x in ("ALiBi", "rotary", "T5", "Shaw"))
    farther = last["sinusoids"] > last["learned"] + 10, relative > last["sinusoids"] + 10
    return lesson.Result(rows, draw, finding, lesson.judge(*farther))


if __name__ == "__main__":
    lesson.main(run)
