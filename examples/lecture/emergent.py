"""Query, key and value have no meaning of their own until training gives each head a use.

    python examples/lecture/emergent.py [--quick] [--output FOLDER]

A model with two layers of four heads learns to label each word with its relation to another word,
such as nsubj (subject). Nothing shows it the other word. A head agrees with the syntax if its
largest weight, except on the word itself, is on the other word. The table has the shares (%) of the
best head. Its last row has heads that always look one to five words away.

Equation: weights = softmax((W_Q x) · (W_K x) / √H), where W_Q and W_K are random before training

Refuted if: the entropy of the weights, or their agreement with the syntax, did not change.

Classes: `ka.models.sequence_labeler`, `ka.data.TaggerPreprocessor`

Papers: [Clark 2019](https://arxiv.org/abs/1906.04341)

Caption: Agreement of the best head with the syntax, for all words and for words of some relations.

Try this: set `COUNT = 20`. The heads then stay close to where they were before training.
"""

import functools

import keras
import lesson
import numpy as np

import keras_attention as ka

COLUMNS = ["entropy (nats)", "distance (words)", "all words (%)", "nsubj", "obj", "det", "case"]
COUNT, SIZE = 4000, dict(num_layers=2, num_heads=4, hidden_dim=32, intermediate_dim=64)
PAD = functools.partial(keras.utils.pad_sequences, maxlen=20, padding="post", value=-1)


def run(quick):
    train, test, source = lesson.read_trees(*((16, 50) if quick else (COUNT, 500)))
    labels = sorted({name for tree in train + test for name in tree.relations})
    words = ka.data.TaggerPreprocessor.build(train, labels, max_size=2000, characters=False)
    inputs, ids = (words([tree.tokens for tree in trees], 20) for trees in (train, test))
    targets, kinds = (PAD([words.labels.ids(x.relations) for x in y]) for y in (train, test))
    heads = PAD([tree.heads for tree in test])
    groups = [heads > 0, *(kinds == labels.index(name) for name in COLUMNS[3:])]
    offsets = np.subtract.outer(*2 * [np.arange(ids.shape[1])])[:, None]  # (T, 1, T)

    def describe(weights):  # (B, T, N, T) of all heads, to the numbers of `COLUMNS`
        sums = (np.sum(weights * abs(x), axis=-1) for x in (np.log(weights + 1e-9), offsets))
        agrees = np.where(offsets == 0, -1, weights).argmax(-1) == heads[..., None] - 1
        shares = (100 * agrees[group].mean(axis=0).max() for group in groups)
        return [*(x[kinds >= 0].mean() for x in sums), *shares]

    def measure(model):
        with ka.visualization.record_attention(model) as maps:
            model(ids)
        return describe(np.concatenate([*maps.values()], axis=1).swapaxes(1, 2))

    build = functools.partial(ka.models.sequence_labeler, len(words.tokenizer), len(labels), **SIZE)
    measured = {"before": np.array(lesson.over_seeds(lambda: measure(build()), quick))}
    fit = dict(epochs=8, learning_rate=3e-3, loss=ka.training.MaskedSparseCategoricalCrossentropy())
    measured |= lesson.compare({"after": build}, measure, inputs, targets, quick, **fit)
    fixed = np.stack([np.eye(len(offsets), k=k) for k in range(-5, 6) if k], axis=1)
    measured["fixed distance"] = np.array([describe(np.tile(fixed, (len(ids), 1, 1, 1)))])

    def draw(figure):
        axes = figure.add_subplot(xlabel="relation", ylabel="agreement of the best head (%)")
        for name, x in measured.items():
            axes.plot(["all", *COLUMNS[3:]], x[:, 2:].mean(axis=0), linestyle="", label=name)
        axes.legend()

    before, after, fixed = (x.mean(axis=0) for x in measured.values())
    finding = f"The entropy goes from {before[0]:.2f} to {after[0]:.2f} nats. The best head agrees "
    finding += f"for {after[2]:.0f} % of the words ({before[2]:.0f} % before training), and for "
    finding += f"{after[4]:.0f} % of the objects (a fixed distance: {fixed[4]:.0f} %)."
    verdict = lesson.judge(after[2] > before[2] + 5, after[0] < before[0] - 0.2)
    rows = lesson.tabulate("heads", measured, dict(enumerate(COLUMNS[:-1])))
    return lesson.Result(rows, draw, finding, verdict, source)


if __name__ == "__main__":
    lesson.main(run)
