"""Search with MiniLM before and after fine-tuning: Tatoeba, and questions of QAMR.

    python benchmarks/text_search.py CHECKPOINT qamr [--train 1000]

Prints the scores of held-out texts for the checkpoint as it is, and for the same model after
fine-tuning on pairs of the same kind.

CHECKPOINT is a folder with Hugging Face's all-MiniLM-L6-v2, which was trained on English text. The
environment variable KERAS_ATTENTION_DATA names the folder of the data:

- mt-tatoeba/tatoeba.deu-eng.*: 1,000 German sentences and their translations, in random order. The
  first 300 are for testing. Queries are German, documents are English. Name it `tatoeba`.
- qa-qamr: questions and the sentences that contain the answers. Training reads dev.tsv. Tests read
  two questions for each sentence of test.tsv, and search in all of these sentences. No sentence is
  in both files.
"""

import argparse
import os
import pathlib
import random
import time

import keras

import keras_attention as ka

TESTED, PER_SENTENCE = 300, 2


def read_tatoeba(folder, draw):
    """Return a `DataSet` of German sentences that match their English translations."""
    path = folder / "mt-tatoeba" / "tatoeba.deu-eng"
    files = tuple(path.with_suffix(f".deu-eng.{language}") for language in ("deu", "eng"))
    pairs = ka.data.from_matching_files(test=files).test
    draw.shuffle(pairs)
    return ka.data.MatchingTexts.collect(pairs[TESTED:], test=pairs[:TESTED])


def read_qamr(folder, draw):
    """Return a `DataSet` of questions that match the sentence with the answer."""
    folder = folder / "qa-qamr"
    data = ka.data.from_question_files(train=folder / "dev.tsv", test=folder / "test.tsv")
    train = [(question.question, question.context) for question in [*data.train, *data.dev]]
    draw.shuffle(train)
    by_sentence = {}
    for question in data.test:
        by_sentence.setdefault(question.context, []).append(question.question)
    test = [
        (question, sentence)
        for sentence, questions in by_sentence.items()
        for question in draw.sample(questions, min(PER_SENTENCE, len(questions)))
    ]
    return ka.data.MatchingTexts.collect(train, test=test)


READERS = {"tatoeba": read_tatoeba, "qamr": read_qamr}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("data", choices=READERS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--train", type=int, help="Number of pairs for training. Default: all.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = pathlib.Path(os.environ["KERAS_ATTENTION_DATA"])
    data = READERS[arguments.data](folder, random.Random(arguments.seed))
    train = data.train[: arguments.train]
    print(f"{len(train)} training pairs, {len(data.dev)} dev, {len(data.test)} test", flush=True)
    keras.utils.set_random_seed(arguments.seed)
    task = ka.tasks.TextEmbedder.from_preset(arguments.checkpoint)
    print("as it is:", task.evaluate(data), flush=True)
    start, seconds = time.process_time(), time.perf_counter()
    history = task.fit(
        train,
        data.dev[: len(train) // 8 + 1],
        epochs=arguments.epochs,
        batch_size=arguments.batch_size,
        minutes=arguments.minutes,
        seed=arguments.seed,
        verbose=0,
    )
    print(
        f"fine-tuned for {time.perf_counter() - seconds:.0f} s, {time.process_time() - start:.0f} "
        f"CPU seconds, {len(history.epoch)} epochs, temperature {task.temperature:.4f}:",
        task.evaluate(data),
    )
