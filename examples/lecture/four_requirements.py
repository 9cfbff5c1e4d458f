"""Sinusoids are unique, keep equal distances equal, are bounded and deterministic.

    python examples/lecture/four_requirements.py [--quick] [--output FOLDER]

The script encodes positions p of texts of 16, 64 and 256 tokens by D = 32 features. It measures
each requirement by one number.

Equation: code(p)[2k] = sin(p / 10000^(2k/D)), code(p)[2k + 1] = cos(p / 10000^(2k/D))

Refuted if: sinusoids failed a requirement, or the index met all of them.

Classes: `ka.positions.Scalar`, `ka.positions.Sinusoidal`, `ka.positions.Rotary`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762), [Su 2021](https://arxiv.org/abs/2104.09864)

Caption: The number of each requirement, and whether the code meets it. Required: unique above 0,
equal distances 1, bounded 1, deterministic 0. The learned table ends at 64 tokens (inf).

Try this: set `WIDTH = 2`. The codes of positions 0 and 44 are then almost the same.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

WIDTH, LENGTHS, TABLE = 32, (16, 64, 256), 64
REQUIREMENTS = "unique", "equal distances", "bounded", "deterministic"


def train_table(quick):
    position, ids = ka.positions.Learned(TABLE), keras.Input((TABLE,), dtype="int32")
    x = ka.blocks.TokenEmbedding(10, WIDTH, position=position, padding_id=None)(ids)
    model = keras.Model(ids, keras.layers.Dense(8)(x))
    texts = np.random.default_rng(0).integers(10, size=(1000, TABLE))
    lesson.fit(model, texts, 0 * texts + np.arange(TABLE) // 8, quick, learning_rate=3e-3)
    return position


def encode(position, length):
    """Return the codes (length, WIDTH) of the positions in a text of this length."""
    vector = position.rotate(np.ones((1, length, 1, WIDTH), "float32"))[:, :, 0]
    return np.asarray(position.embed(vector * float("rotate" in position.roles)))[0]


def measure(trainings):
    """Return the numbers of the four requirements, and whether the code meets each of them."""
    lengths = [n for n in LENGTHS if n <= getattr(trainings[0], "max_length", n)]
    codes = [encode(position, n) for position in trainings for n in lengths]
    index, vectors = np.concatenate([np.arange(len(x)) for x in codes]), np.concatenate(codes)
    distances, same = np.linalg.norm(vectors[:, None] - vectors, axis=-1), index[:, None] == index
    steps = np.concatenate([np.linalg.norm(np.diff(x, axis=0), axis=1) for x in codes])
    growth = np.abs(codes[-1]).max() / np.abs(codes[0]).max() if lengths[2:] else np.inf
    numbers = distances[~same].min(), steps.max() / steps.min(), growth, distances[same].max()
    return *numbers, numbers[0] > 1e-3, *np.less(numbers[1:], (1.001, 1.001, 1e-3))


def run(quick):
    codes = {"index": [ka.positions.Scalar(scaled=False)], "0 to 1": [ka.positions.Scalar()]}
    codes |= {"sinusoids": [ka.positions.Sinusoidal()], "rotary": [ka.positions.Rotary()]}
    codes["learned"] = lesson.over_seeds(lambda: train_table(quick), quick, 2)
    measured = {name: np.array([measure(trainings)]) for name, trainings in codes.items()}
    rows = lesson.tabulate("code", measured, dict(enumerate(REQUIREMENTS)), digits=2)

    def draw(figure):
        for i, panel in enumerate(figure.subplots(1, 4, sharey=True)):
            for name, x in reversed(measured.items()):
                met, size = bool(x[0, 4 + i]), x[0, i] if np.isfinite(x[0, i]) else 0
                panel.barh(name, size, color=f"C{1 - met}")
                panel.text(size, name, f" {x[0, i]:.3g} " + "✗✓"[met], va="center")
            panel.set(xlabel=REQUIREMENTS[i], xticks=[], xlim=(0, 2.2 * panel.get_xlim()[1]))

    met = {name: int(x[0, 4:].sum()) for name, x in measured.items()}
    finding = "Requirements met: " + ", ".join(f'{n} by "{name}"' for name, n in met.items()) + "."
    return lesson.Result(rows, draw, finding, lesson.judge(met["sinusoids"] == 4, met["index"] < 4))


if __name__ == "__main__":
    lesson.main(run)
