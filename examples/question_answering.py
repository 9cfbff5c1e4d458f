"""Answers questions with words of a text, or says that the text has no answer.

    python examples/question_answering.py [--train FILE --test FILE] [--from CHECKPOINT]

FILE is SQuAD's JSON, or QAMR's TSV; without one the questions are about made-up people, whose names
are not those that it learns from. CHECKPOINT is a folder of Hugging Face's files or an id, such as
hf://distilbert-base-uncased, to begin with. The way with exports and a model card is
`keras-attention train question_answerer --train FILE --output DIR`.
"""

import argparse

import keras_attention as ka

TEXT = (
    "In 1907 Edda Rasmussen left Turin for Lyon. Her shop for clocks and maps had seven rooms. "
    "It was closed in 1934."
)
QUESTIONS = ("What did Edda Rasmussen sell?", "Where did Rasmussen come from?", "How rich was she?")


def read(train, test):
    """Questions of files, or made-up ones."""
    if train is not None:
        return ka.data.from_question_files(train=train, test=test)
    parts = {part: ka.data.facts(part, size) for part, size in (("train", 3000), ("test", 500))}
    return ka.data.Question.collect(**parts, dev=ka.data.facts("dev", 300))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--from", dest="checkpoint")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    data = read(given.train, given.test)
    if given.checkpoint:
        task = ka.tasks.QuestionAnswerer.from_preset(given.checkpoint)
    else:
        task = ka.tasks.QuestionAnswerer.from_data(data)
    task.fit(data, epochs=given.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    for question, found in zip(
        QUESTIONS, task.predict([(q, TEXT) for q in QUESTIONS]), strict=True
    ):
        print(f"{question} {found.answer or '(no answer)'} ({100 * found.probability:.0f} %)")
    task.attention((QUESTIONS[0], TEXT), path=given.attention)
