"""Without positions, attention does not see the order of its input.

    python examples/lecture/order.py [--quick] [--output FOLDER]

A text has 15 tokens: A, B, and 13 that are red or blue. A classifier with one layer learns which
color is more frequent, and whether A is before B. It adds to each embedding nothing, the index, the
index scaled to 0 to 1, or sinusoids. Shuffled texts keep the answers for their first order.

Equation: softmax(Q Kᵀ / √H) V is the same for each token in any order, and so is their mean

Refuted if: without positions, shuffling changed the logits, or the order were not guessed (50 %).

Classes: `ka.models.text_classifier`, `ka.positions.Scalar`, `ka.positions.Sinusoidal`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762)

Caption: Accuracy (%, mean of three seeds) of both questions. Guessing gives 50 %.

Try this: set `norm="pre"`. A norm then subtracts the index, as all features share it.
"""

import functools

import lesson
import numpy as np

import keras_attention as ka

POSITIONS = {"none": None, "index": ka.positions.Scalar(scaled=False)}
POSITIONS |= {"0 to 1": ka.positions.Scalar(), "sinusoids": ka.positions.Sinusoidal()}
COLUMNS = {0: "color", 1: "order", 3: "order, shuffled text"}


def make_texts(count, seed):
    """Generate token ids (count, 15), and the answers to both questions (count, 2) as 0 or 1."""
    draw = np.random.default_rng(seed)
    colors = draw.integers(3, 5, size=(count, 13))  # 1 is A, 2 is B, 3 is red, 4 is blue
    texts = draw.permuted(np.concatenate([np.tile([1, 2], (count, 1)), colors], axis=1), axis=1)
    before = np.argmax(texts == 1, axis=1) < np.argmax(texts == 2, axis=1)
    return texts, np.stack([np.sum(colors == 3, axis=1) > 6, before], axis=1)


def run(quick):
    (texts, answers), (test, right) = make_texts(8000, 0), make_texts(100 if quick else 2000, 1)
    shuffled = np.random.default_rng(2).permuted(test, axis=1)

    def measure(model):
        logits = np.asarray(model(test)), np.asarray(model(shuffled))
        classes = [np.argmax(x, axis=1) for x in logits]
        shares = [np.mean(np.stack([x % 2, x // 2], axis=1) == right, axis=0) for x in classes]
        return [*100 * np.concatenate(shares), np.abs(logits[0] - logits[1]).max()]

    def build(position):
        encoder = ka.models.TransformerEncoder.of_size(1, 2, 32, 64, norm="post")
        settings = dict(hidden_dim=32, encoder=encoder, position=position, dropout=0.0)
        return ka.models.text_classifier(5, 4, **settings)

    builds = {name: functools.partial(build, position) for name, position in POSITIONS.items()}
    data, settings = (texts, answers @ [1, 2]), dict(epochs=5, learning_rate=5e-3, decay=True)
    measured = lesson.compare(builds, measure, *data, quick, **settings)
    shares, change = measured.values(), measured["none"][:, 4].max()
    none, *seen = (x[:, 1].mean() for x in shares)

    def draw(figure):
        axes = figure.add_subplot(xlabel="positions", ylabel="accuracy (%)", ylim=(40, 115))
        index = np.arange(len(measured))
        for place, (i, column) in enumerate(COLUMNS.items()):
            bars = index + 0.25 * place - 0.25, [x[:, i].mean() for x in shares]
            axes.bar(*bars, 0.22, hatch="/." * place, label=column)
        axes.set_xticks(index, measured)
        axes.legend(ncols=3, loc="upper center")

    finding = f"Without positions, {none:.1f} % of the answers about the order are right, and "
    finding += f"shuffling changes the logits by {change:.0e}. With sinusoids, {seen[-1]:.1f} %."
    verdict = lesson.judge(abs(none - 50) < 3 and change < 1e-4, min(seen) > 60)
    return lesson.Result(lesson.tabulate("positions", measured, COLUMNS), draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
