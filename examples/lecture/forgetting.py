"""A single context vector forgets, early information most. Attention sees every position.

    python examples/lecture/forgetting.py [--quick] [--output FOLDER]

The source is a list of 8 facts, such as C2: letter C has digit 2. The decoder reads 4 of the
letters, and outputs their digits. Three models of width 32 learn it in 752 steps: a GRU encoder and
decoder that share only its last state, the same with additive attention, and a Transformer.

Equation: answer = f(question, h_T) or, with attention, f(question, Σ_s weights_s · h_s)

Refuted if: GRUs without attention recalled the first facts as well as the last ones.

Classes: `ka.models.seq2seq_recurrent`, `ka.models.seq2seq_transformer`

Papers: [Bahdanau 2015](https://arxiv.org/abs/1409.0473)

Caption: Accuracy against the number of facts after the one in question, mean of three seeds.

Try this: set `SCALE = 1`. In one run, both GRUs then stayed at 44 %.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

WIDTH, SCALE, SIZES = 32, 20, (lesson.LETTERS * lesson.DIGITS + 1, lesson.LETTERS + 1)
SETTINGS = dict(epochs=4, learning_rate=1e-2, decay=True)
ATTENDING = dict(bidirectional=False, attention="luong", score="additive")
TRANSFORMER = dict(num_layers=1, num_heads=2, intermediate_dim=WIDTH, norm="pre")


def make_gru(source_size, target_size, hidden_dim, dropout):
    ids = {n: keras.Input((None,), dtype="int32", name=n) for n in ("source_ids", "target_ids")}
    x = ka.blocks.TokenEmbedding(source_size, hidden_dim)(ids["source_ids"])
    _, state = keras.layers.GRU(hidden_dim, return_state=True)(x)
    x = ka.blocks.TokenEmbedding(target_size, hidden_dim)(ids["target_ids"])
    x = keras.layers.GRU(hidden_dim, return_sequences=True)(x, initial_state=state)
    return keras.Model(ids, keras.layers.Dense(target_size)(x))


def build(make, scale=1, **parts):
    model = make(*SIZES, hidden_dim=WIDTH, dropout=0.0, **parts)
    for weight in model.weights:
        weight.assign(weight * (scale if "embedding" in weight.path else 1))
    return model


def run(quick):
    facts, letters, digits, _ = lesson.make_facts(16 if quick else 12_000, seed=0, questions=4)
    tests, asked, answers, index = lesson.make_facts(100 if quick else 3_000, seed=1, questions=4)

    def measure(model):
        right = np.argmax(model({"source_ids": tests, "target_ids": asked}), axis=-1) == answers
        return [100 * right[index == k].mean() for k in reversed(range(lesson.LETTERS))]

    builds = {
        "GRU": lambda: build(make_gru, SCALE),
        "GRU with attention": lambda: build(ka.models.seq2seq_recurrent, SCALE, **ATTENDING),
        "Transformer": lambda: build(ka.models.seq2seq_transformer, **TRANSFORMER),
    }
    data = {"source_ids": facts, "target_ids": letters}, digits
    measured = lesson.compare(builds, measure, *data, quick, **SETTINGS)
    rows = lesson.tabulate("model", measured, {k: f"{k} facts after" for k in (0, 3, 7)})
    forgets, *attend = (values.mean(axis=0) for values in measured.values())

    def draw(figure):
        axes = figure.add_subplot(xlabel="later facts", ylabel="accuracy (%)", ylim=(0, 105))
        axes.plot(np.transpose([forgets, *attend]), label=list(measured))
        axes.legend(loc="lower left")

    finding = f"The GRU without attention recalls {forgets[0]:.1f} % of the last facts and "
    finding += f"{forgets[-1]:.1f} % of the first. With attention, at least {np.min(attend):.1f} %."
    verdict = lesson.judge(forgets.max() + 10 < np.min(attend), forgets[0] - forgets[-1] > 3)
    return lesson.Result(rows, draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
