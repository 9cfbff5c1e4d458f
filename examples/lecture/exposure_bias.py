"""Teacher forcing causes exposure bias. Scheduled sampling helps, at a cost.

    python examples/lecture/exposure_bias.py [--quick] [--output FOLDER]

Transformers learn to remove noise: each letter of a text repeats the letter before with probability
0.9, and the source has 60 % of its letters replaced at random. In 512 steps, one reads only true
letters, the other more and more of its own predictions. Then both write 1000 texts.

Equation: P(yₜ | x, y₁ … yₜ₋₁). Sampling reads the true yᵢ with probability ε, which falls to 0.

Refuted if: a mistake did not lower the accuracy of later letters, or sampling did not raise it.

Classes: `ka.training.with_two_passes`, `ka.training.ScheduledSampling`

Papers: [Bengio 2015](https://arxiv.org/abs/1506.03099)

Caption: Accuracy (y) against letters since the first mistake. Dashed: the last column of the table.

Try this: set `STAYS = 0.2`. Mistakes then do not matter: both last columns have 47 % in one run.
"""

import lesson
import numpy as np

import keras_attention as ka

LETTERS, LENGTH, STAYS, CLEAR, START, STEPS = 8, 16, 0.9, 0.4, 9, 512
SIZE = dict(num_layers=1, num_heads=4, hidden_dim=32, intermediate_dim=64, dropout=0, norm="pre")
COLUMNS = {0: "all letters (%)", 1: "after a mistake (%)", 2: "same, true letters before (%)"}
MODELS = {
    "teacher forcing": lambda: ka.models.seq2seq_transformer(LETTERS + 1, LETTERS + 2, **SIZE),
    "scheduled sampling": lambda: ka.training.with_two_passes(MODELS["teacher forcing"]()),
}


def make_data(count, seed):
    draw, shape = np.random.default_rng(seed), (count, LENGTH)
    steps = np.where(draw.random(shape) < STAYS, 0, draw.integers(1, LETTERS, shape))
    text = (np.cumsum(steps, axis=1) + draw.integers(LETTERS, size=(count, 1))) % LETTERS + 1
    noisy = np.where(draw.random(shape) < CLEAR, text, draw.integers(1, LETTERS + 1, shape))
    return {"source_ids": noisy, "target_ids": np.insert(text[:, :-1], 0, START, axis=1)}, text


def run(quick):
    count, rows, length = (20, 8, 2) if quick else (1000, 8 * STEPS, LENGTH)
    (inputs, text), train, fits, results = make_data(count, 1), make_data(rows, 0), [], {}

    def measure(model):
        fits.append(lambda: [model.train_on_batch(*make_data(64, i)) for i in range(10)])
        ids = np.full((count, LENGTH + 1), START)
        for t in range(length):  # write a letter
            ids[:, t + 1] = np.argmax(model(inputs | {"target_ids": ids[:, :-1]})[:, t], axis=-1)
        right, true = ids[:, 1:] == text, np.argmax(model(inputs), axis=-1) == text
        since = np.arange(LENGTH) - np.argmin(np.pad(right, [(0, 0), (0, 1)]), axis=1)[:, None]
        numbers = right.mean(), right[since > 0].mean(), true[since > 0].mean()
        return [100 * x for x in (*numbers, *(right[since == k].mean() for k in range(1, 9)))]

    sampling = ka.training.ScheduledSampling(ka.training.LinearForcing(1 / STEPS))
    for name, callbacks in zip(MODELS, ([], [sampling]), strict=True):
        settings = {"epochs": 8, "learning_rate": 5e-3, "callbacks": callbacks}
        results |= lesson.compare({name: MODELS[name]}, measure, *train, quick, **settings)
    ratios = np.zeros(1) if quick else np.divide(*lesson.clock(fits[::-5], 5, "process_time").T)

    def draw(figure):
        axes = figure.add_subplot(xlabel="letters since the first mistake", ylabel="accuracy (%)")
        for color, (name, values) in zip(lesson.COLORS, results.items(), strict=False):
            axes.plot(range(1, 9), values.mean(axis=0)[3:], label=name)
            axes.axhline(values[:, 2].mean(), color=color, linestyle="--", marker="")
        axes.legend(loc="center left")

    (bad, top), (new, _) = (x[:, 1:3].T for x in results.values())
    finding = f"After a first mistake, teacher forcing has {bad.mean():.0f} % of the letters right "
    finding += f"(with true letters before {top.mean():.0f} %), scheduled sampling {new.mean():.0f}"
    finding += f" %. A step of it takes {lesson.format_spread(ratios)} times the processor time."
    verdict = lesson.judge(bad.max() + 10 < top.min(), bad.max() < new.min(), ratios.mean() > 1.1)
    return lesson.Result(lesson.tabulate("training", results, COLUMNS), draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
