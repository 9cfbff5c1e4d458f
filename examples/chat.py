"""Learns to converse from dialogues, as sequence to sequence or as a language model, and does it.

    python examples/chat.py FILE [--language-model] [--minutes 10]

FILE holds dialogues: JSON lines, each with `turns`, a list of texts, or ChatterBot's YAML. What is
said afterwards is drawn from what such talk is made of: it knows nothing, and means nothing. The
way with exports and a model card is `keras-attention train seq2seq_transformer --train FILE
--output DIR`, and then `keras-attention predict DIR --chat`.
"""

import argparse

import keras_attention as ka

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--turns", type=int, default=3, help="of a context")
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    dialogues = ka.data.from_dialogue_files(train=given.file)
    if given.language_model:
        task = ka.tasks.CausalLM.from_data(
            dialogues.corpus, tokens="subwords", max_length=64, mask=None
        )
        task.fit(dialogues.corpus, minutes=given.minutes)
        print(task.evaluate(dialogues.corpus.dev))
    else:
        pairs = dialogues.pairs(given.turns)
        task = ka.tasks.Seq2SeqLM.from_data(pairs)
        task.fit(pairs, minutes=given.minutes)
        print(task.evaluate(pairs.dev))
    turns = []
    while line := input("> ").strip():
        turns += [line, task.reply([*turns, line])]
        print(turns[-1])
