"""Learned embeddings place words of one kind near each other, which one-hot vectors cannot.

    python examples/lecture/embeddings.py [--quick] [--output FOLDER]

A language model with one layer of width 32 learns to predict the next word of 4,000 generated
sentences, such as "the cat saw a bright table". The kinds of words are determiners, animals, acts,
things, good and bad adjectives. The model does not know them. By chance, 15 % of neighbors match.

Equation: cos(a, b) = a · b / (|a| |b|), which is 0 for any two one-hot vectors

Refuted if: words of one kind were not nearer to each other than to other words after training.

Classes: `ka.models.causal_language_model`, `ka.blocks.TokenEmbedding`

Papers: [Mikolov 2013](https://arxiv.org/abs/1301.3781)

Caption: Cosine (color) of every two words, sorted by kind. Embeddings show a block for each kind.

Try this: set `SENTENCES = 40`. Words of one kind then stay as far apart as others.
"""

import lesson
import numpy as np

import keras_attention as ka

SENTENCES = 4000
KIND = np.repeat(np.arange(len(lesson.WORDS)), [len(x) for x in lesson.WORDS.values()])


def build():
    size = {"num_layers": 1, "num_heads": 2, "hidden_dim": 32, "intermediate_dim": 64}
    return ka.models.causal_language_model(len(lesson.VOCABULARY), dropout=0.0, **size)


def get_table(model):
    return np.asarray(model.get_layer("embedding").table.embeddings)[1:]  # without padding


def compute_cosines(table):
    return table @ table.T / np.outer(*2 * [np.linalg.norm(table, axis=1)])


def measure(table):
    """Return the mean cosine in one kind and between kinds, and the share of right neighbors."""
    cosines, same, own = compute_cosines(table), KIND[:, None] == KIND, np.eye(len(KIND)) > 0
    nearest = np.where(own, -2, cosines).argmax(axis=1)
    right = 100 * (KIND[nearest] == KIND).mean() if cosines[~own].any() else 100 * same[~own].mean()
    return [cosines[same & ~own].mean(), cosines[~same].mean(), right]


def run(quick):
    ids, *_ = lesson.make_sentences(16 if quick else SENTENCES, seed=0)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    train = {"inputs": ids[:, :-1], "targets": ids[:, 1:], "loss": loss, "learning_rate": 3e-3}
    tables = {"one-hot": [np.eye(len(KIND))]}
    tables["before training"] = lesson.over_seeds(lambda: get_table(build()), quick)
    tables |= lesson.compare({"after training": build}, get_table, quick=quick, epochs=5, **train)
    measured = {name: np.array([measure(x) for x in values]) for name, values in tables.items()}
    columns = ["cosine in one kind", "between kinds", "nearest has the same kind (%)"]
    rows = lesson.tabulate("vectors", measured, dict(enumerate(columns)), digits=2)

    def draw(figure):
        for column, name in (1, "one-hot"), (2, "after training"):
            axes = figure.add_subplot(1, 2, column, title=name, xlabel="word", ylabel="word")
            image = axes.imshow(compute_cosines(tables[name][0]), cmap="RdBu_r", vmin=-1, vmax=1)
        figure.colorbar(image, ax=figure.axes, label="cosine")

    initial, (inside, between, right) = (x.mean(0) for x in list(measured.values())[1:])
    finding = f"Training raises the cosine of words of one kind from {initial[0]:.2f} to "
    finding += (
        f"{inside:.2f}. Between kinds it is {between:.2f}. The nearest neighbor has the same "
    )
    finding += f"kind for {right:.0f} % of the words, {initial[2]:.0f} % before training."
    verdict = lesson.judge(inside > between + 0.2, right > 90)
    return lesson.Result(rows, draw, finding, verdict, "4,000 generated sentences")


if __name__ == "__main__":
    lesson.main(run)
