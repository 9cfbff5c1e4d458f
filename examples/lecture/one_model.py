"""Most tasks can be written as question answering, and that as seq2seq. A custom model does better.

    python examples/lecture/one_model.py [--quick] [--output FOLDER]

Texts have 8 words of 3 kinds. A tag names the kinds of a word and the one before. The class is
whether more words are of kind 0 than 1, the span is from the first to the last of kind 0. One
Transformer of width 32 reads a question and writes the answer. Three models each do one task.

Equation: answer = seq2seq([question, text]), against answer = custom_model(text)

Refuted if: seq2seq did not learn a task, or was as good as the custom models after as many steps.

Classes: `ka.models.seq2seq_transformer`, `ka.models.text_classifier`, `ka.models.question_answerer`

Papers: [McCann 2018](https://arxiv.org/abs/1806.08730)

Caption: Right tags, classes and ends of spans (%) of new texts, for three seeds each.

Try this: set `EPOCHS = 8`. With twice the steps, the one model finds 99.8 % of the ends in one run.
"""

import lesson
import numpy as np

import keras_attention as ka

LENGTH, WORDS, TAGS, START, EPOCHS, TASKS = 8, 25, 9, 39, 4, ("tags", "class", "span")
SIZE = dict(num_layers=1, num_heads=4, hidden_dim=32, intermediate_dim=64, dropout=0.0)
LABELS, SPANS = ka.training.MaskedSparseCategoricalCrossentropy(), ka.training.SpanCrossentropy()
BUILDS = (
    (lambda: ka.models.seq2seq_transformer(START + 1, norm="pre", **SIZE), LABELS),
    (lambda: ka.models.sequence_labeler(WORDS, TAGS, **SIZE), LABELS),
    (lambda: ka.models.text_classifier(WORDS, 2, **SIZE), LABELS),
    (lambda: ka.training.JointModel(ka.models.question_answerer(WORDS, **SIZE)), SPANS),
)


def predict(model, inputs, steps):
    """Return the ids that the one model writes, or the prediction of a custom model."""
    for t in range(steps if "target_ids" in inputs else 0):  # write a token
        ids, chosen = inputs["target_ids"], np.argmax(model(inputs)[:, t], axis=-1)
        inputs = inputs | {"target_ids": np.insert(ids[:, :-1], t + 1, chosen, axis=1)}
    logits = model(inputs)
    return np.argmax(np.stack([*logits.values()], 1) if isinstance(logits, dict) else logits, -1)


def run(quick):
    sizes, measured = (8 if quick else 4096, 1000), []
    trains, tests = (lesson.make_questions(size, seed) for seed, size in enumerate(sizes))
    for (build, loss), train, (inputs, right) in zip(BUILDS, trains, tests, strict=True):

        def measure(model, inputs=inputs, right=right):
            same = predict(model, inputs, 1 if quick else LENGTH - 1) == right
            tasks = 3 if "target_ids" in inputs else 1
            parts = zip(np.split(same, tasks), np.split(right, tasks), strict=True)
            return [100 * np.mean(x[y >= 0]) for x, y in parts]

        fit = {"epochs": EPOCHS, "learning_rate": 3e-3, "loss": loss}
        measured += lesson.compare({"": build}, measure, *train, quick, **fit).values()
    one, own = measured[0], np.concatenate(measured[1:], axis=1)
    models = {"one model": one, "custom models": own}
    rows = lesson.tabulate("right (%)", models, dict(enumerate(TASKS)))

    def draw(figure):
        axes = figure.add_subplot(xlabel="task", ylabel="right (%)")
        for k, values in enumerate(models.values()):
            style = dict(color=lesson.COLORS[k], marker="os"[k], linestyle="")
            axes.plot(np.arange(3) + k / 5, values.T, **style)
        axes.set_xticks(range(3), TASKS)
        axes.legend(axes.lines[:: len(one)], models, loc="lower center")

    shares = [", ".join(f"{x:.1f}" for x in values.mean(axis=0)) for values in (one, own)]
    finding = "With as many steps, the one model is right for {} % of the tags, classes and ends of"
    finding = f"{finding} spans, custom models for {{}} %.".format(*shares)
    verdict = lesson.judge(one.min() > 75, *(own.mean(axis=0) > one.mean(axis=0) + 1))
    return lesson.Result(rows, draw, finding, verdict)


if __name__ == "__main__":
    lesson.main(run)
