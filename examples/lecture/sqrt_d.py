"""Without division by √H, scores grow with H: softmax picks one key, and its gradient vanishes.

    python examples/lecture/sqrt_d.py [--quick] [--output FOLDER]

The script generates 512 queries and 64 keys with variance 1, for several head sizes H. It measures
the variance of the scores, the entropy of the weights (ln 64 = 4.16 if all are equal, 0 for one
key), and the norm of the gradient of a random sum of the weights with respect to the scores.

Equation: weights = softmax(q · k / √H)

Refuted if: the variance of q · k did not grow with H, or the gradient were not smaller.

Classes: `ka.scores.ScaledDot`, `ka.scores.Dot`, `ka.attention.Attention`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762)

Caption: Entropy of the weights (left) and norm of the gradient of the scores (right) for growing
head sizes.

Try this: generate queries with variance 1/H in place of 1. Then the division is not needed.
"""

import keras
import lesson
import numpy as np
import tensorflow as tf

import keras_attention as ka

SIZES, KEYS, QUERIES = (4, 16, 64, 256, 1024), 64, 512
SCORES = {"q · k / √H": ka.scores.ScaledDot(), "q · k": ka.scores.Dot()}


def measure(score, size, queries):
    """Return the variance of the scores, the entropy of the weights and the gradient's norm."""
    draw = np.random.default_rng(size)
    query = draw.normal(size=(1, queries, 1, size)).astype("float32")
    key = draw.normal(size=(1, KEYS, 1, size)).astype("float32")
    target = draw.normal(size=(1, 1, queries, KEYS)).astype("float32")
    scores = score(query, key)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        weights = ka.normalizers.Softmax()(scores)
        loss = keras.ops.sum(weights * target)
    gradient = np.linalg.norm(tape.gradient(loss, scores), axis=-1).mean()
    entropy = -np.sum(weights * np.log(np.maximum(weights, 1e-30)), axis=-1).mean()
    return float(np.var(scores)), float(entropy), float(gradient)


def run(quick):
    sizes = SIZES[:3] if quick else SIZES
    measured = {
        n: [measure(s, h, 64 if quick else QUERIES) for h in sizes] for n, s in SCORES.items()
    }
    rows = [
        {"scores": name, "H": size, "variance": f"{variance:.2f}", "entropy": f"{entropy:.2f}"}
        | {"gradient norm": f"{gradient:.3f}"}
        for name, values in measured.items()
        for size, (variance, entropy, gradient) in zip(sizes, values, strict=True)
    ]

    def draw(figure):
        for column, title in (1, "entropy of the weights (nats)"), (2, "norm of the gradient"):
            axes = figure.add_subplot(1, 2, column)
            for name, values in measured.items():
                axes.plot(sizes, [value[column] for value in values], label=name)
            axes.set(xscale="log", xlabel="head size H", ylabel=title, ylim=(0, None))
        axes.legend()

    plain, scaled = measured["q · k"][-1], measured["q · k / √H"][-1]
    finding = f"At H = {sizes[-1]}, the division raises the entropy of the weights from "
    finding += f"{plain[1]:.2f} to {scaled[1]:.2f}, and the norm of the gradient "
    finding += f"{scaled[2] / plain[2]:.1f} times."
    holds = plain[0] > 10 * scaled[0] and plain[1] < scaled[1] and plain[2] < scaled[2]
    return lesson.Result(rows, draw, finding, lesson.VERDICTS[0 if holds else 2])


if __name__ == "__main__":
    lesson.main(run)
