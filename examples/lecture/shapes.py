"""An encoder's output has the length of its input. A decoder decides the length of its own output.

    python examples/lecture/shapes.py [--quick] [--output FOLDER]

A Transformer encoder of width 32 reads sentences of 6 to 9 words. Three outputs share it: the kind
of each word, one label for its adjectives, and the sentence without determiners, from a decoder.

Equation: words (B, T, D) = encoder(ids), label = W · mean(words), decoder: writes until END

Refuted if: the decoder's output were as long as the input, or one of the outputs did not learn.

Classes: `ka.models.seq2seq_transformer`, `ka.blocks.Pooling`, `ka.generation.generate`

Papers: [Sutskever 2014](https://arxiv.org/abs/1409.3215)

Caption: Length of each output (y) against the words of the sentence (x). Area: number of sentences.

Try this: set `LEFT_OUT = 0`. The decoder then copies the whole sentence.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

LEFT_OUT, WORDS = len(lesson.WORDS["determiner"]), len(lesson.VOCABULARY)
SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 32, "intermediate_dim": 64, "dropout": 0.0}
EACH, ONE, OWN = "label_for_each_word", "one_label", "own_sequence"
LOSS = ka.training.MaskedSparseCategoricalCrossentropy


def make_examples(count, seed):
    """Return inputs and targets. A sequence begins with START = WORDS, and ends with WORDS + 1."""
    ids, kinds, good = lesson.make_sentences(count, seed)
    rows = [[WORDS, *row[row > LEFT_OUT], WORDS + 1] for row in ids]
    rows = keras.utils.pad_sequences(rows, 11, padding="post")
    targets = {EACH: kinds, ONE: good, OWN: rows[:, 1:]}
    return {"source_ids": ids, "target_ids": rows[:, :-1]}, targets


def run(quick):
    keras.utils.set_random_seed(0)
    seq2seq = ka.models.seq2seq_transformer(WORDS + 2, norm="pre", **SIZE)
    words = seq2seq.get_layer("encoder")(seq2seq.input["source_ids"])
    labels, label = keras.layers.Dense(len(lesson.WORDS)), keras.layers.Dense(2)
    outputs = {EACH: labels(words), ONE: label(ka.blocks.Pooling("mean")(words))}
    model = keras.Model(seq2seq.input, outputs | {OWN: seq2seq.output})
    loss = {EACH: LOSS(), ONE: LOSS(), OWN: LOSS(ignore_class=0)}
    train, (inputs, targets) = make_examples(4000, 0), make_examples(20 if quick else 300, 1)
    lesson.fit(model, *train, quick, epochs=8, learning_rate=3e-3, loss=loss)
    ids, limit = inputs["source_ids"], 2 if quick else 10
    outputs = {name: np.argmax(logits, axis=-1) for name, logits in model(inputs).items()}
    tokens = {"start_token_id": WORDS, "end_token_id": WORDS + 1}
    outputs[OWN] = ka.generation.generate(seq2seq, ids, limit, **tokens)
    outputs[EACH], targets[OWN] = np.where(ids > 0, outputs[EACH], -1), targets[OWN][:, :limit]
    lengths = {EACH: ids, ONE: np.ones((len(ids), 1), int), OWN: outputs[OWN]}
    lengths = {name: np.sum(x > 0, axis=1) for name, x in lengths.items()}
    rows = []
    for name, length in lengths.items():
        same = 100 * np.mean((outputs[name] == targets[name]).reshape(len(ids), -1).all(axis=1))
        row = {"output": name, "length": f"{length.min()} to {length.max()}"}
        rows.append(row | {"wholly right (%)": f"{same:.1f}"})

    def draw(figure):
        axes = figure.add_subplot(xlabel="words in the sentence", ylabel="length", ylim=(0, 12))
        for marker, (name, length) in zip("os^", lengths.items(), strict=True):
            points, count = np.unique([lengths[EACH], length], axis=1, return_counts=True)
            axes.scatter(*points, s=10 + 3 * count, marker=marker, label=name, alpha=0.7)
        figure.legend(loc="outside right", markerscale=0.5)

    other = 100 * np.mean(lengths[OWN] != lengths[EACH])
    worst = min(float(row["wholly right (%)"]) for row in rows)
    finding = f"The decoder's output differs in length from {other:.0f} % of the sentences. "
    finding += f"All three outputs are wholly right for at least {worst:.0f} % of the sentences."
    return lesson.Result(rows, draw, finding, lesson.judge(other > 50, worst > 90))


if __name__ == "__main__":
    lesson.main(run)
