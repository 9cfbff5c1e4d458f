"""The mask hides later tokens: without it, training seems perfect and generation fails.

    python examples/lecture/leak.py [--quick] [--output FOLDER]

One-layer models learn sequences of 24 letters. The next of 8 letters follows with probability 0.7,
each other with 0.3 / 7. So the loss without later tokens is at least the entropy of this rule.
Models read new sequences whole, as in training, or only up to each token, as in generation.

Equation: causal mask: i sees j if j <= i. The target of i is the token i + 1.

Refuted if: without the mask, training stayed above the entropy, or generation as good as with it.

Classes: `ka.masks.Causal`, `ka.models.sequence_labeler`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762)

Caption: Loss of each token. Dashed: the entropy. The last token has no later one to copy from.

Try this: set `MASKS["none"] = ka.masks.Causal() | ka.masks.Window(2)`, for one later token only.
"""

import functools

import keras
import lesson
import numpy as np

import keras_attention as ka

LETTERS, LENGTH, SURE, TITLES = 8, 24, 0.7, ("training", "generation")
MASKS = {"causal": ka.masks.Causal(), "none": None}
ENTROPY = -SURE * np.log(SURE) - (1 - SURE) * np.log((1 - SURE) / (LETTERS - 1))


def make_data(count, seed):
    draw = np.random.default_rng(seed)
    steps = draw.integers(2, LETTERS + 1, size=(count, LENGTH + 1))
    ids = np.cumsum(np.where(draw.random(steps.shape) < SURE, 1, steps), axis=1) % LETTERS
    return ids[:, :-1] + 1, ids[:, 1:]  # id 0 is padding


def build(mask):
    encoder = ka.models.TransformerEncoder.of_size(1, 4, 32, 64, mask=mask, position="rotary")
    return ka.models.sequence_labeler(9, LETTERS, hidden_dim=32, dropout=0, encoder=encoder)


def run(quick):
    (ids, targets), times = make_data(512, seed=1), range(1, 2 if quick else LENGTH + 1)

    def measure(model):
        prefixes = np.stack([model(ids[:, :t])[:, -1] for t in times], axis=1)
        logits = np.stack([model(ids)[:, : len(times)], prefixes])
        answers = np.stack([targets[:, : len(times)]] * 2)
        losses = keras.losses.sparse_categorical_crossentropy(answers, logits, from_logits=True)
        return np.mean(losses, axis=1)  # of whole sequences and of prefixes: (2, T)

    builds = {name: functools.partial(build, mask) for name, mask in MASKS.items()}
    losses = lesson.compare(
        builds, measure, *make_data(8192, 0), quick, epochs=3, learning_rate=3e-3
    )

    def draw(figure):
        for i, axes in enumerate(figure.subplots(1, 2, sharey=True)):
            for name, values in losses.items():
                axes.plot(times, values[:, i].mean(axis=0), label=f"mask: {name}")
            axes.axhline(ENTROPY, color="gray", linestyle="--", marker="")
            axes.set(xlabel="position of the token", ylabel="loss (nats)", title=TITLES[i])
        axes.legend()

    means = {name: values.mean(axis=2) for name, values in losses.items()}
    rows = lesson.tabulate("mask", means, {0: "loss in training", 1: "loss in generation"}, 2)
    (safe, fair), (low, high) = (values.mean(axis=0) for values in means.values())
    finding = f"The entropy is {ENTROPY:.2f}. Without the mask, the loss is {low:.2f} in training, "
    finding += f"{high:.2f} in generation. With the mask, it is {safe:.2f} and {fair:.2f}."
    verdict = lesson.judge(low < ENTROPY / 2, high > fair + 0.5, safe > ENTROPY - 0.1)
    return lesson.Result(rows, draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
