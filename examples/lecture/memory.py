"""Transformer-XL recalls facts as far back as its memory reaches, and a kNN memory reaches further.

    python examples/lecture/memory.py [--quick] [--output FOLDER]

A text states 8 facts in its first segment. Each of its 7 segments has 4 questions. Models have one
layer of width 32. Transformer-XL keeps the hidden states of 1 or 2 segments. The kNN memory stores
the keys and values of 6 segments, and a query attends to the 4 nearest. Guessing finds 25 %.

Equation: k, v = W · [memory, segment]. kNN: g · attend(q, memory) + (1 - g) · attend(q, segment)

Refuted if: 1 segment were enough for facts 2 segments back, or 2 segments for those 6 back.

Classes: `ka.attention.with_memory`, `ka.attention.MemorizingAttention`, `ka.training.ResetMemory`

Papers: [Dai 2019](https://arxiv.org/abs/1901.02860), [Wu 2022](https://arxiv.org/abs/2203.08913)

Caption: Share of correct answers (y) against the number of segments since the facts (x).

Try this: set `memory_length=3 * LENGTH`. The kNN memory then guesses beyond 3 segments.
"""

import lesson
import numpy as np

import keras_attention as ka

LENGTH, NOTHING, LOSS = 12, 41, ka.training.MaskedSparseCategoricalCrossentropy()
KNN = dict(layer=ka.attention.MemorizingAttention, memory_length=6 * LENGTH, num_neighbors=4)


def make_streams(rows, segments, steps, seed):
    """Return token ids, answers, and segments since the facts. Row r begins in segment r."""
    text, since = np.divmod(np.add.outer(range(steps), np.arange(rows) % segments), segments)
    facts, *asked, _ = lesson.make_facts(steps * rows, seed, questions=4 * segments)
    letters, digits = (x.reshape(-1, rows, segments, 4)[text, range(rows), since] for x in asked)
    digits[text == 0] = since[text == 0] = -1  # no label, since the row may begin after the facts
    begin = np.where(since[..., None], NOTHING, facts[text * rows + range(rows)])
    pairs = (begin, letters + 32), (np.full_like(begin, -1), digits)  # token ids, answers
    return *(np.concatenate(pair, -1).reshape(-1, LENGTH) for pair in pairs), since.ravel()


def build(rows, memory, layer=ka.attention.MultiHeadAttention, **settings):
    attention = layer(2, 16, score="cosine", mask="causal", **settings)
    layers = {"attention": attention, "feed_forward": ka.blocks.FeedForward(64)}
    parts = {"hidden_dim": 32, "dropout": 0.0, "encoder": ka.models.TransformerEncoder(1, **layers)}
    model = ka.models.sequence_labeler(NOTHING + 1, lesson.DIGITS, **parts)
    return model if memory is None else ka.attention.with_memory(model, memory, batch_size=rows)


def run(quick):
    rows, segments, *steps = (8, 3, 2, 4) if quick else (64, 7, 224, 35)
    train, (*test, since) = (make_streams(rows, segments, n, seed=i) for i, n in enumerate(steps))
    options = {"batch_size": rows, "callbacks": [ka.training.ResetMemory()]}

    def measure(model):
        logits = model.predict(test[0], verbose=0, **options)
        right = 100 * (np.argmax(logits, -1) == test[1])[:, -4:]
        return [np.exp(LOSS(test[1], logits)), *(right[since == d].mean() for d in range(segments))]

    builds = {f"{n} segments": lambda n=n: build(rows, n * LENGTH or None) for n in range(3)}
    builds |= {"kNN": lambda: build(rows, 0, **KNN)}
    settings = {"epochs": 3, "learning_rate": 5e-3, "decay": True, "shuffle": False, "loss": LOSS}
    measured = lesson.compare(builds, measure, *train[:2], quick, **settings, **options)
    right = [x.mean(0)[1:] for x in measured.values()] + 2 * quick * [np.full(segments, np.nan)]

    def draw(figure):
        axes = figure.add_subplot(xlabel="segments since the facts", ylabel="correct answers (%)")
        axes.plot(np.transpose(right), label=list(builds))
        figure.legend(loc="outside right", title="memory")

    one, two, far, knn = right[1][2], right[2][2], right[2][-1], right[3][-1]
    finding = f"Two segments back, 1 segment finds {one:.0f} % of the answers and 2 segments find "
    finding += f"{two:.0f} %. Six back, 2 segments find {far:.0f} %, kNN {knn:.0f} %."
    columns = {0: "perplexity"} | {d + 1: f"{d} back" for d in (0, 1, 2, segments - 1)}
    table = lesson.tabulate("memory", measured, columns)
    return lesson.Result(table, draw, finding, lesson.judge(two > one + 20, knn > far + 20))


if __name__ == "__main__":
    lesson.main(run)
