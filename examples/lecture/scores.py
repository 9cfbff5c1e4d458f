"""A score can be a dot product, a cosine, a learned matrix or a concatenation: all of them learn.

    python examples/lecture/scores.py [--quick] [--output FOLDER]

The input is a list of 8 facts, such as C2 (letter C has digit 2), and a letter. One attention layer
with one head learns to find the digit of this letter. The models differ only in the score. The time
is that of a forward pass with 256 queries and keys of size 32, relative to the dot product.

Equation: q · k, q · k / √H, scale · cos(q, k), qᵀ W k, vᵀ tanh(W [q, k]), -|q - k|²

Refuted if: a score answered fewer than 95 % of new questions right.

Classes: `ka.scores.Dot`, `ka.scores.ScaledDot`, `ka.scores.Cosine`, `ka.scores.Bilinear`,
`ka.scores.Additive`, `ka.scores.Concat`, `ka.scores.SquaredDistance`

Papers: [Luong 2015](https://arxiv.org/abs/1508.04025)

Caption: Left: training loss (mean of three seeds). Right: median time of a forward pass, divided by
that of the dot product. The lines show the middle half of 15 runs.

Try this: set `epochs=5`. Squared distances have learned by then, and concatenation hardly at all.
"""

import functools
import time

import lesson
import numpy as np

import keras_attention as ka


def time_scores(names, repeats, length):
    """Return the seconds of a forward pass with each score: (repeats, scores)."""
    x = np.random.default_rng(0).normal(size=(4, length, 32)).astype("float32")
    layers = [ka.attention.Attention(score=name) for name in names]
    seconds = np.zeros((repeats + 1, len(names)))
    for row in seconds:
        for i, layer in enumerate(layers):
            started = time.perf_counter()
            np.asarray(layer([x, x]))
            row[i] = time.perf_counter() - started
    return seconds[1:]  # the first pass also builds the layers


def run(quick):
    facts, letters, digits, _ = lesson.make_facts(1000, seed=0)
    *test, answers, _ = lesson.make_facts(100 if quick else 2000, seed=1)

    def measure(model):
        right = np.argmax(model(test), axis=-1) == answers
        return [100 * right.mean(), model.count_params(), *model.history.history["loss"]]

    builds = {name: functools.partial(lesson.build_recall, score=name) for name in ka.scores.NAMES}
    settings = dict(epochs=16, learning_rate=5e-3)
    measured = lesson.compare(builds, measure, [facts, letters], digits, quick, **settings)
    names = list(measured)
    seconds = time_scores(names, *(2, 16) if quick else (15, 256))
    low, middle, high = np.quantile(seconds / np.median(seconds[:, 0]), (0.25, 0.5, 0.75), axis=0)
    rows = lesson.tabulate("score", measured, {0: "accuracy (%)"})
    for row, x, ratio in zip(rows, measured.values(), middle, strict=True):
        row |= {"parameters": f"{x[0, 1]:,.0f}", "time": f"{ratio:.1f} × dot"}

    def draw(figure):
        left, side = figure.subplots(1, 2, width_ratios=(3, 2))
        for name, x in measured.items():
            left.plot(np.arange(1, x.shape[1] - 1), x[:, 2:].mean(axis=0), label=name)
        left.set(xlabel="training lists (thousands)", ylabel="loss (nats)")
        left.legend()
        side.barh(names, middle, xerr=[middle - low, high - middle])
        side.set_xlabel("time / time of dot")

    right = [x[:, 0].mean() for x in measured.values()]
    finding = f"Each score answers at least {min(right):.1f} % right. The slowest is "
    finding += f"{names[np.argmax(middle)]}, which takes {middle.max():.1f} times as long as dot."
    return lesson.Result(rows, draw, finding, lesson.judge(*(share > 95 for share in right)))


if __name__ == "__main__":
    lesson.main(run)
