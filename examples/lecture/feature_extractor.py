"""A pretrained and frozen encoder with a new head needs fewer labels than training from nothing.

    python examples/lecture/feature_extractor.py [--quick] [--output FOLDER]

An encoder with one layer of width 32 learns to guess masked words in 4,000 generated sentences
without labels. The task is then to tell whether the adjectives of a sentence are good or bad. From
a few labeled sentences, a classifier learns it in 100 steps: only its head on the frozen encoder,
all of it from nothing, or, as a control, only its head on a frozen encoder with random weights.

Equation: logits = W · mean(encoder(x)) + b, where only W and b are trained

Refuted if: training from nothing were as good with few labels, or random frozen weights as good.

Classes: `ka.models.masked_language_model`, `ka.models.text_classifier`, `ka.training.freeze`

Papers: [Devlin 2019](https://arxiv.org/abs/1810.04805), section 5.3

Caption: Accuracy (mean of three seeds) in 1,000 other sentences, against the number of labels.

Try this: set `LABELS = (8, 512)`. With 512 labels, training from nothing is also right for 100 %.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

LABELS, MASK, WORDS = (8, 32, 128), len(lesson.VOCABULARY), len(lesson.VOCABULARY) + 1
ENCODER = ka.models.TransformerEncoder.of_size(1, 2, 32, 64, position="rotary")
PARTS = dict(hidden_dim=32, dropout=0.0, embedding=ka.models.TextEmbedding(), encoder=ENCODER)


def run(quick):
    keras.utils.set_random_seed(0)
    ids, *_ = lesson.make_sentences(16 if quick else 4000, seed=0)
    place = np.random.default_rng(0).integers(np.count_nonzero(ids, axis=1))[:, None]
    labels = np.where(np.arange(ids.shape[1]) == place, ids, -1)  # one masked word
    masked = np.where(labels < 0, ids, MASK)
    source = ka.models.masked_language_model(WORDS, **PARTS)
    loss = ka.training.MaskedSparseCategoricalCrossentropy()
    lesson.fit(source, masked, labels, quick, epochs=20, learning_rate=3e-3, loss=loss)
    test, _, answers = lesson.make_sentences(1000, seed=1)
    counts, results = LABELS[: 1 if quick else None], []

    def build(frozen, pretrained=False):
        model = ka.models.text_classifier(WORDS, 2, **PARTS)
        for name in ("embedding", "block_0", "final_norm") if pretrained else ():
            model.get_layer(name).set_weights(source.get_layer(name).get_weights())
        if frozen:
            ka.training.freeze(model)
        return model

    def measure(model):
        return [100 * np.mean(np.argmax(model(test), axis=-1) == answers)]

    builds = {"frozen, pretrained": lambda: build(True, True)}
    builds |= {"from nothing": lambda: build(False), "frozen, random": lambda: build(True)}
    for count in counts:
        train = (np.resize(x, (640, *x.shape[1:])) for x in lesson.make_sentences(count, 2)[::2])
        results.append(lesson.compare(builds, measure, *train, quick, learning_rate=1e-2))
    measured = {name: np.hstack([result[name] for result in results]) for name in results[0]}

    def draw(figure):
        axes = figure.add_subplot(xlabel="labeled sentences", ylabel="accuracy (%)", xscale="log")
        for name, x in measured.items():
            axes.plot(counts, x.mean(axis=0), label=name)
        axes.legend()

    frozen, whole, *random = (x[:, 0].mean() for x in measured.values())
    finding = f"With {counts[0]} labels, the head on the pretrained encoder is right for "
    finding += f"{frozen:.0f} % of the sentences, and training from nothing for {whole:.0f} %."
    verdict = lesson.judge(frozen > whole + 3, frozen > max(random, default=whole) + 3)
    rows = lesson.tabulate("model", measured, {i: f"{n} labels (%)" for i, n in enumerate(counts)})
    return lesson.Result(rows, draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
