"""Train a chatbot on dialogues, with a sequence-to-sequence or a language model, and chat with it.

    python examples/chat.py [FILE] [--language-model] [--minutes 10]

FILE contains dialogues: JSON lines with `turns`, a list of strings, or ChatterBot's YAML. Without
it, dialogues about journeys are generated. The replies imitate the style of the dialogues. Do not
expect facts from them. An empty line ends the chat. A figure shows the attention of each word of a
reply. To train the same model, export it and write a model card, run `keras-attention train
seq2seq_transformer --train FILE --output DIR`. Then chat with `keras-attention predict DIR --chat`.
"""

import argparse
import random

import keras_attention as ka

CITIES = {"Rome": "Warm days.", "Oslo": "It snowed.", "Lima": "Dry, as ever.", "Bern": "It rained."}
OPENINGS = ("I was in {}.", "I am back from {}!", "We spent a week in {}.")
QUESTIONS = ("How was it?", "And the weather?", "What was it like there?")


def make_dialogues(count=600, seed=0):
    """Generate dialogues of three turns about journeys. The last turn depends on the first."""
    generator, dialogues = random.Random(seed), []
    for _ in range(count):
        city = generator.choice(list(CITIES))
        opening, question = generator.choice(OPENINGS), generator.choice(QUESTIONS)
        dialogues.append((opening.format(city), question, CITIES[city]))
    return ka.data.Dialogue.collect(dialogues)


def read(file):
    """Read the dialogues in a file, or generate some if `file` is None."""
    return make_dialogues() if file is None else ka.data.from_dialogue_files(train=file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--turns", type=int, default=3, help="number of turns in a context")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    dialogues = read(arguments.file)
    options = {} if arguments.file else {"vocabulary_size": 200}
    if arguments.language_model:
        text = ka.data.join_dialogues(dialogues)
        task = ka.tasks.CausalLM.from_data(
            text,
            tokens="subwords",
            max_length=64,
            mask=None,
            **options,
        )
        task.fit(text, epochs=arguments.epochs, minutes=arguments.minutes)
        print(task.evaluate(text.dev))
        task.attention(text.dev[0], path=arguments.attention)
    else:
        pairs = ka.data.pair_dialogues(dialogues, arguments.turns)
        task = ka.tasks.Seq2SeqLM.from_data(pairs, **options)
        task.fit(pairs, epochs=arguments.epochs, minutes=arguments.minutes)
        print(task.evaluate(pairs.dev))
        task.attention(pairs.dev[0].source, path=arguments.attention)
    turns = []
    while line := input("> ").strip():
        turns += [line, task.reply([*turns, line])]
        print(turns[-1])
