"""The decoder decides when to stop: it predicts END like any other token.

    python examples/lecture/stopping.py [--quick] [--output FOLDER]

Transformers with one layer learn to copy 2 to 10 digits. In one training targets end with END, in
the other the loss ignores that step. Then both generate at most 16 tokens for 256 new sources.

Equation: P(y) = Πₜ P(yₜ | y₁ … yₜ₋₁, x), where the last token of y is END

Refuted if: outputs of the first model had wrong lengths, or the second model stopped too.

Classes: `ka.models.seq2seq_transformer`, `ka.generation.generate`

Papers: [Sutskever 2014](https://arxiv.org/abs/1409.3215)

Caption: Probability of END at each step for sources of 6 digits (left), and mean length of the
output against length of the source (right).

Try this: set `LIMIT = 30`. Outputs of the second model become longer, those of the first do not.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

START, END, DIGIT, LENGTHS, LIMIT, SHOWN = 1, 2, 3, np.arange(2, 11), 16, 6  # id 0 is padding
SIZE = dict(num_layers=1, num_heads=4, hidden_dim=48, intermediate_dim=96, dropout=0, norm="pre")


def make_data(count, seed, end=END):
    draw, step = np.random.default_rng(seed), np.arange(max(LENGTHS) + 1)
    lengths = draw.choice(LENGTHS, size=(count, 1))
    ids = np.where(step < lengths, draw.integers(DIGIT, DIGIT + 10, size=(count, len(step))), 0)
    inputs = {"source_ids": ids[:, :-1], "target_ids": np.insert(ids[:, :-1], 0, START, axis=1)}
    return inputs, np.where(step == lengths, end, ids), lengths[:, 0]


def build():
    return ka.models.seq2seq_transformer(DIGIT + 10, **SIZE)


def run(quick):
    inputs, _, lengths = make_data(64 if quick else 256, seed=1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    settings = dict(epochs=6, learning_rate=3e-3, loss=loss)

    def measure(model):
        """Return the share of right lengths, P(END) of each step, and the output lengths."""
        ends = {"start_token_id": START, "end_token_id": END}
        ids = ka.generation.generate(model, inputs["source_ids"], LIMIT, **ends)
        made = np.where(np.any(ids == END, axis=1), np.argmax(ids == END, axis=1), LIMIT)
        ends = np.asarray(keras.ops.softmax(model(inputs)))[lengths == SHOWN, :, END].mean(axis=0)
        means = (np.mean(made[lengths == length]) for length in LENGTHS)
        return 100 * np.mean(made == lengths), *ends, *means

    results, ends = {}, {"with END": END, "without END": 0}
    for name, end in list(ends.items())[: 1 if quick else None]:
        data = *make_data(8192, 0, end)[:2], quick
        results |= lesson.compare({name: build}, measure, *data, **settings)

    def draw(figure):
        (left, right), steps = figure.subplots(1, 2), max(LENGTHS) + 1
        for name, values in results.items():
            left.plot(np.arange(steps) + 1, values.mean(axis=0)[1 : steps + 1], label=name)
            right.plot(LENGTHS, values.mean(axis=0)[steps + 1 :], label=name)
        left.set(xlabel="step", ylabel="probability of END")
        right.set(xlabel="length of the source", ylabel="length of the output")
        right.legend(title="training")

    rows = lesson.tabulate("training", results, {0: "right length (%)"})
    right, wrong = [values[:, 0].mean() for values in results.values()] * (2 if quick else 1)
    finding = f"The output has the right length in {right:.0f} % of the cases if END is in the "
    finding += f"training, and in {wrong:.0f} % if it is not."
    return lesson.Result(rows, draw, finding, lesson.judge(right > 90, wrong < 10))


if __name__ == "__main__":
    lesson.main(run)
