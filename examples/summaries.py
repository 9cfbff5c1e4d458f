"""Summarize reports in one line, with a model that is exported as a single LiteRT file.

    python examples/summaries.py [--epochs 6] [--csv news.csv --max-length 512]

Summarization is sequence-to-sequence like translation, but the sources are long. So each subword
only attends to a window, and the time grows linearly with the length. Without `--csv` the reports
are generated: eleven unimportant sentences, and one about one of five events in one of ten places.
The model must find this sentence. From a file, pairs with more than `--max-length` subwords in the
source or target are left out. Writes a preset, model.tflite and an image of the attention. To train
such a model, test every file and write a model card, run `keras-attention train
seq2seq_transformer --train news.csv --text-column article --label-column summary --score rouge
--max-length 512 --output DIR`.
"""

import argparse
import pathlib
import random

import keras_attention as ka

EVENTS = {
    "A fire broke out in {place} and burned until {day} morning.": "Fire in {place}.",
    "Heavy snow closed the schools of {place} on {day}.": "Snow closes schools in {place}.",
    "On {day} the mayor of {place} stepped down after nine years.": "Mayor of {place} resigns.",
    "Thousands marched through {place} on {day} for higher wages.": "March for wages in {place}.",
    "A bridge in {place} opened to traffic on {day}, two years late.": "Bridge opens in {place}.",
}
PLACES = ["Oslo", "Lima", "Kyoto", "Porto", "Accra", "Quito", "Riga", "Turin", "Perth", "Hanoi"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
FILLERS = [
    "Markets were quiet on {day}.",
    "It rained in {place} for most of the day.",
    "The museum of {place} is closed on {day}.",
    "A choir from {place} sang to a full house.",
    "Ticket prices rise again on {day}.",
    "Trains to {place} ran on time.",
    "Nobody won the lottery on {day}.",
]


def make_up(count, seed):
    """Generate reports of 12 sentences. Only one of them is about an event."""
    draw, pairs = random.Random(seed), []

    def fill(sentence, place):
        return sentence.format(place=place, day=draw.choice(DAYS))

    for _ in range(count):
        place, (report, summary) = draw.choice(PLACES), draw.choice(list(EVENTS.items()))
        sentences = [fill(draw.choice(FILLERS), draw.choice(PLACES)) for _ in range(11)]
        sentences.insert(draw.randrange(12), fill(report, place))
        pairs.append(ka.data.Pair(" ".join(sentences), summary.format(place=place)))
    return pairs


def main(pairs, output, size, training):
    task = ka.tasks.Seq2SeqLM.from_data(
        pairs, score="rouge", mask=ka.masks.Window(32), position="rotary", **size
    )
    task.fit(pairs, **training)
    print("test", task.evaluate(pairs))
    reports = [pair.source for pair in pairs.test[:3]]
    for pair, summary in zip(pairs.test, task.predict(reports), strict=False):
        print(f"{pair.source}\n  -> {summary} (right: {pair.target})")

    task.save_to_preset(output, overwrite=True)
    print(task.export(output / "model.tflite", quantization="int8_weights"))
    in_file = ka.tasks.from_preset(output, "litert")
    assert all(isinstance(summary, str) for summary in in_file.predict(reports))
    task.attention(min(reports, key=len), output / "attention.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--csv", type=pathlib.Path, help="pairs, of them a tenth to test")
    parser.add_argument("--text", default="article", help="column with the text")
    parser.add_argument("--summary", default="summary", help="column of summaries")
    parser.add_argument("--max-length", type=int, default=512, help="maximum number of subwords")
    parser.add_argument("--reports", type=int, default=2000, help="number of made-up reports")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("saved_models/summaries-by-hand")
    )
    arguments = parser.parse_args()
    size, training = {"max_length": arguments.max_length}, {"epochs": arguments.epochs}
    if arguments.csv is None:
        tested = max(1, arguments.reports // 20)
        data = ka.data.Pair.collect(make_up(arguments.reports, 0), test=make_up(tested, 1))
        size |= dict(num_layers=2, num_heads=4, hidden_dim=64, vocabulary_size=200)
        size["dropout"] = 0.0  # with dropout it finds the event, but not the place
        training |= dict(learning_rate=3e-3, batch_size=32)
    else:
        read = ka.data.from_pair_files(
            train=arguments.csv, text_column=arguments.text, label_column=arguments.summary
        )
        data = ka.data.Pair.collect(read.train, test=read.dev)
    main(data, arguments.output, size, training)
