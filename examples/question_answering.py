"""Answer questions with a span of a text, or decide that the text does not answer it.

    python examples/question_answering.py [--train FILE --test FILE] [--from CHECKPOINT]

FILE is SQuAD's JSON or QAMR's TSV. Without it, the questions are about fictitious people, with
different names in the test split. To fine-tune a checkpoint, pass CHECKPOINT: a folder with Hugging
Face's files, or an id such as hf://distilbert-base-uncased. The following command trains a model
from scratch, exports it and writes a model card:
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
    """Read questions from files, or generate them if `train` is None."""
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
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    data = read(arguments.train, arguments.test)
    if arguments.checkpoint:
        task = ka.tasks.QuestionAnswerer.from_preset(arguments.checkpoint)
    else:
        task = ka.tasks.QuestionAnswerer.from_data(data)
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    results = task.predict([(question, TEXT) for question in QUESTIONS])
    for question, result in zip(QUESTIONS, results, strict=True):
        print(f"{question} {result.answer or '(no answer)'} ({100 * result.probability:.0f} %)")
    task.attention((QUESTIONS[0], TEXT), path=arguments.attention)
