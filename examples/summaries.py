"""Summaries: reports are read, one line of what matters is written, in one LiteRT file.

    python examples/summaries.py [--epochs 6] [--csv news.csv --max-length 512]

A summary is a pair, as a translation is, only that the source is long: so each of its subwords
attends to those within a window, which takes twice the time for twice the text. Without --csv the
reports are made up: a dozen sentences about the day, and among them one of five events in one of
ten places. All of these are in the training part: what is learnt is to find the sentence. Of a
file pairs with more than --max-length subwords on a side are left out. Writes a preset,
model.tflite and a picture of what each written subword looked at. `keras-attention train
seq2seq_transformer --train news.csv --text-column article --label-column summary --score rouge
--max-length 512 --output DIR` tests every file, too, and says so on its card.
"""

import argparse
import pathlib
import random

import keras_attention as ka

HAPPENED = {
    "A fire broke out in {place} and burned until {day} morning.": "Fire in {place}.",
    "Heavy snow closed the schools of {place} on {day}.": "Snow closes schools in {place}.",
    "On {day} the mayor of {place} stepped down after nine years.": "Mayor of {place} resigns.",
    "Thousands marched through {place} on {day} for higher wages.": "March for wages in {place}.",
    "A bridge in {place} opened to traffic on {day}, two years late.": "Bridge opens in {place}.",
}
PLACES = ["Oslo", "Lima", "Kyoto", "Porto", "Accra", "Quito", "Riga", "Turin", "Perth", "Hanoi"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
BESIDE = [
    "Markets were quiet on {day}.",
    "It rained in {place} for most of the day.",
    "The museum of {place} is closed on {day}.",
    "A choir from {place} sang to a full house.",
    "Ticket prices rise again on {day}.",
    "Trains to {place} ran on time.",
    "Nobody won the lottery on {day}.",
]


def make_up(count, seed):
    """Reports of 12 sentences, one of which matters: places and days are in the others, too."""
    draw, pairs = random.Random(seed), []

    def fill(sentence, place):
        return sentence.format(place=place, day=draw.choice(DAYS))

    for _ in range(count):
        place, (report, summary) = draw.choice(PLACES), draw.choice(list(HAPPENED.items()))
        sentences = [fill(draw.choice(BESIDE), draw.choice(PLACES)) for _ in range(11)]
        sentences.insert(draw.randrange(12), fill(report, place))
        pairs.append(ka.data.Pair(" ".join(sentences), summary.format(place=place)))
    return pairs


def main(pairs, output, size, numbers):
    task = ka.tasks.Seq2SeqLM.from_data(
        pairs, score="rouge", mask=ka.masks.Window(32), position="rotary", **size
    )
    task.fit(pairs, **numbers)
    print("test", task.evaluate(pairs))
    reports = [pair.source for pair in pairs.test[:3]]
    for pair, summary in zip(pairs.test, task.predict(reports), strict=False):
        print(f"{pair.source}\n  -> {summary} (wanted: {pair.target})")

    task.save_to_preset(output, overwrite=True)
    print(task.export(output / "model.tflite", quantization="int8_weights"))
    in_file = ka.tasks.from_preset(output, "litert")
    assert all(isinstance(summary, str) for summary in in_file.predict(reports))
    task.attention(min(reports, key=len), output / "attention.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--csv", type=pathlib.Path, help="pairs; a tenth is drawn to test")
    parser.add_argument("--text", default="article", help="the column of texts")
    parser.add_argument("--summary", default="summary", help="the column of summaries")
    parser.add_argument("--max-length", type=int, default=512, help="subwords of a text")
    parser.add_argument("--reports", type=int, default=2000, help="how many are made up")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("saved_models/summaries-by-hand")
    )
    given = parser.parse_args()
    size, numbers = {"max_length": given.max_length}, {"epochs": given.epochs}
    if given.csv is None:
        tested = max(1, given.reports // 20)
        data = ka.data.Pair.collect(make_up(given.reports, 0), test=make_up(tested, 1))
        size |= dict(num_layers=2, num_heads=4, hidden_dim=64, vocabulary_size=200)
        size["dropout"] = 0.0  # with the recipe's it finds the event, and not the place
        numbers |= dict(learning_rate=3e-3, batch_size=32)
    else:
        read = ka.data.from_pair_files(
            train=given.csv, text_column=given.text, label_column=given.summary
        )
        data = ka.data.Pair.collect(read.train, test=read.dev)
    main(data, given.output, size, numbers)
