"""Several heads find several kinds of relation at once, and their number is a hyperparameter.

    python examples/lecture/heads.py [--quick] [--output FOLDER]

Each of 12 tokens is a letter with a digit, and each letter occurs twice. Every token must output
two digits: that of the token to its left, and that of the other token with its letter. One layer of
width 32 learns it from 4,096 sequences. The table has the mean weight of the head that looks most
at each relation. "talk": 8 heads with `talking_heads=True`.

Equation: y = Dense(y₁, ..., y_N), yₙ = softmax(qₙ · kₙ / √H) vₙ, for N heads of size H = 32 / N

Refuted if: one head were as accurate as two, or two heads did not prefer one relation each.

Classes: `ka.attention.MultiHeadAttention`, `ka.masks.Window`, `ka.visualization.record_attention`

Papers: [Shazeer 2020](https://arxiv.org/abs/2003.02436)

Caption: Accuracy. Right: a circle for each head and seed, in the same colors, without "talk".

Try this: use an `EncoderBlock` with `FeedForward(64)`. One head is then enough: 100 % are right.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

LETTERS, DIGITS, WIDTH = 6, 4, 32
MODELS = {"1": (1, False), "2": (2, False), "4": (4, False), "8": (8, False), "talk": (8, True)}


def make_data(count, seed):
    """Return token ids and labels (count, T), and keys of relations (2, count, 1, T, 1)."""
    draw = np.random.default_rng(seed)
    letters = draw.permuted(np.tile(np.arange(LETTERS).repeat(2), (count, 1)), axis=1)
    digits, tokens = draw.integers(DIGITS, size=letters.shape), np.arange(2 * LETTERS)
    same = (letters[:, :, None] == letters[:, None]) & (tokens[:, None] != tokens)
    keys = np.stack([np.broadcast_to(np.roll(tokens, 1), letters.shape), same.argmax(axis=2)])
    left, twin = (np.take_along_axis(digits, index, axis=1) for index in keys)
    return letters * DIGITS + digits, left * DIGITS + twin, keys[:, :, None, :, None]


def build(heads, talking):
    tokens, position = keras.Input((2 * LETTERS,), dtype="int32"), ka.positions.Learned(2 * LETTERS)
    x = ka.blocks.TokenEmbedding(LETTERS * DIGITS, WIDTH, position, padding_id=None)(tokens)
    parts = dict(talking_heads=talking, mask=~ka.masks.Window(1), name="look")  # not at itself
    x = ka.attention.MultiHeadAttention(heads, WIDTH // heads, **parts)(x, x)
    return keras.Model(tokens, keras.layers.Dense(DIGITS**2)(x))


def run(quick):
    tokens, labels, keys = make_data(16 if quick else 1024, seed=1)

    def measure(model):
        with ka.visualization.record_attention(model) as maps:
            right = 100 * np.mean(np.argmax(model(tokens), axis=-1) == labels)
        looks = np.take_along_axis(np.asarray(maps["look"])[None], keys, -1).mean(axis=(1, 3, 4))
        return [right, *looks.max(axis=1), *looks.ravel()]

    builds = {name: lambda heads=heads: build(*heads) for name, heads in MODELS.items()}
    measured = lesson.compare(builds, measure, *make_data(4096, 0)[:2], quick, learning_rate=1e-2)
    rows = lesson.tabulate("heads", measured, {0: "right (%)", 1: "left", 2: "same letter"}, 2)
    (one, *_), (two, left, same, *_) = measured["1"].T, measured["2"].T

    def draw(figure):
        panel = figure.add_subplot(121, xlabel="number of heads", ylabel="accuracy (%)")
        plane = figure.add_subplot(122, xlabel="weight on the token to the left")
        plane.set(ylabel="weight on the same letter", xlim=(0, 1.05), ylim=(0, 1.05))
        for size, (name, x) in zip((14, 11, 8, 5, 0), measured.items(), strict=False):
            panel.plot([name] * len(x), x[:, 0], linestyle="", mfc="none")
            plane.plot(*np.hstack([*x[:, 3:].reshape(len(x), 2, -1)]), "o", ms=size, mfc="none")

    text = f"One head labels {one.mean():.1f} % of the tokens right, two heads {two.mean():.1f} %."
    verdict = lesson.judge(min(two) > max(one), min(*left, *same) > 0.5)
    return lesson.Result(rows, draw, text, verdict)


if __name__ == "__main__":
    lesson.main(run)
