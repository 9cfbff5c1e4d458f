"""Softmax is one of many normalizers. Others also work, and some give weights of exactly zero.

    python examples/lecture/normalizers.py [--quick] [--output FOLDER]

The input is a list of 8 facts, such as C2 (letter C has digit 2), and a letter. One attention layer
with one head learns to find the digit of this letter. The models differ only in the normalizer.

Equation: weights = normalize(q · k / √H), output = Σ weights · v

Refuted if: only softmax answered more than 95 % right, or no weights were exactly zero.

Classes: `ka.normalizers.Softmax`, `ka.normalizers.Sparsemax`, `ka.normalizers.Entmax`,
`ka.normalizers.TopK`, `ka.normalizers.ReLU`, `ka.normalizers.Sigmoid`, `ka.normalizers.Activation`

Papers: [Martins 2016](https://arxiv.org/abs/1602.02068),
[Peters 2019](https://arxiv.org/abs/1905.05702), [Ramapuram 2024](https://arxiv.org/abs/2409.04431)

Caption: Left: the weights of the 8 facts (columns) for a question about fact 3, after training from
one seed. Right: the share of weights that are exactly zero (%, mean of three seeds).

Try this: set `TopK(k=1)`. The scores then get no gradient, and the accuracy stays near 43 %.
"""

import functools

import lesson
import numpy as np

import keras_attention as ka

NORMALIZERS = {
    "softmax": ka.normalizers.Softmax(),
    "sparsemax": ka.normalizers.Sparsemax(),
    "entmax": ka.normalizers.Entmax(),
    "top 2": ka.normalizers.TopK(k=2),
    "ReLU / length": ka.normalizers.ReLU(divide_by_length=True),
    "sigmoid": ka.normalizers.Sigmoid(bias="-log_length"),
    "tanh": ka.normalizers.Activation("tanh"),
}
COLUMNS = {0: "accuracy (%)", 1: "exact zeros (%)", 2: "sum of the weights"}


def run(quick):
    facts, letters, digits, _ = lesson.make_facts(10_000, seed=0)
    *test, answers, index = lesson.make_facts(100 if quick else 2000, seed=1)

    def measure(model):
        with ka.visualization.record_attention(model) as maps:
            right = np.argmax(model(test), axis=-1) == answers
        weights = np.asarray(maps["attention"])[:, 0, 0]
        numbers = 100 * right.mean(), 100 * np.mean(weights == 0), weights.sum(axis=-1).mean()
        return [*numbers, *weights[np.argmax(index == 3)]]

    builds = {
        name: functools.partial(lesson.build_recall, normalizer=normalizer)
        for name, normalizer in NORMALIZERS.items()
    }
    inputs, settings = [facts, letters], dict(epochs=3, learning_rate=5e-3)
    measured = lesson.compare(builds, measure, inputs, digits, quick, **settings)
    right, zeros, _ = np.array([x.mean(axis=0)[:3] for x in measured.values()]).T

    def draw(figure):
        left, side = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
        maps = [x[0, 3:] for x in measured.values()]
        image = left.imshow(maps, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        left.set(xlabel="fact", yticks=range(len(measured)), yticklabels=measured)
        figure.colorbar(image, ax=left, label="weight", location="left")
        side.barh(range(len(measured)), zeros)
        side.set(xlabel="weights that are exactly zero (%)", xlim=(0, 100))

    works = [name for name, share in zip(measured, right, strict=True) if share > 95]
    sparse = [name for name, share in zip(measured, zeros, strict=True) if share > 50]
    finding = f"{len(works)} of {len(measured)} normalizers answer more than 95 % right: "
    finding += f"{', '.join(works)}. Most weights are exactly zero with {', '.join(sparse)}."
    rows = lesson.tabulate("normalizer", measured, COLUMNS)
    return lesson.Result(rows, draw, finding, lesson.judge(len(works) > 1, len(sparse) > 0))


if __name__ == "__main__":
    lesson.main(run)
