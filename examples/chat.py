"""Learns to converse from dialogues, as sequence to sequence or as a language model, and does it.

    python examples/chat.py [FILE] [--language-model] [--minutes 10]

FILE holds dialogues: JSON lines, each with `turns`, a list of texts, or ChatterBot's YAML; without
one they are made, of journeys. What is said afterwards is drawn from what such talk is made of: it
knows nothing, and means nothing. An empty line ends it. A picture shows what each word of a reply
looked at. The way with exports and a model card is
`keras-attention train seq2seq_transformer --train FILE --output DIR`, and then
`keras-attention predict DIR --chat`.
"""

import argparse
import random

import keras_attention as ka

CITIES = {"Rome": "Warm days.", "Oslo": "It snowed.", "Lima": "Dry, as ever.", "Bern": "It rained."}
OPENINGS = ("I was in {}.", "I am back from {}!", "We spent a week in {}.")
QUESTIONS = ("How was it?", "And the weather?", "What was it like there?")


def make_dialogues(count=600, seed=0):
    """Talk of journeys, whose last turn needs the first."""
    generator, dialogues = random.Random(seed), []
    for _ in range(count):
        city = generator.choice(list(CITIES))
        opening, question = generator.choice(OPENINGS), generator.choice(QUESTIONS)
        dialogues.append((opening.format(city), question, CITIES[city]))
    return ka.data.Dialogue.collect(dialogues)


def read(file):
    """The dialogues of a file, or some that are made."""
    return make_dialogues() if file is None else ka.data.from_dialogue_files(train=file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--turns", type=int, default=3, help="of a context")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    dialogues = read(given.file)
    options = {} if given.file else {"vocabulary_size": 200}
    if given.language_model:
        text = ka.data.join_dialogues(dialogues)
        task = ka.tasks.CausalLM.from_data(
            text,
            tokens="subwords",
            max_length=64,
            mask=None,
            **options,
        )
        task.fit(text, epochs=given.epochs, minutes=given.minutes)
        print(task.evaluate(text.dev))
        task.attention(text.dev[0], path=given.attention)
    else:
        pairs = ka.data.pair_dialogues(dialogues, given.turns)
        task = ka.tasks.Seq2SeqLM.from_data(pairs, **options)
        task.fit(pairs, epochs=given.epochs, minutes=given.minutes)
        print(task.evaluate(pairs.dev))
        task.attention(pairs.dev[0].source, path=given.attention)
    turns = []
    while line := input("> ").strip():
        turns += [line, task.reply([*turns, line])]
        print(turns[-1])
