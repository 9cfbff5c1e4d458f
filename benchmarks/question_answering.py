"""Question answering on QAMR (Michael et al., 2018), trained on its dev file, tested on test.

    python benchmarks/question_answering.py DATA [--checkpoint CHECKPOINT] --backup FOLDER

Prints exact match and F1 twice: against the closest of three human answers, as in SQuAD's script,
and against the answer of the question's author. Also prints the CPU minutes of training divided by
two.

DATA is a folder with dev.tsv, test.tsv and wiki-sentences.tsv. CHECKPOINT is a folder with Hugging
Face's files, or an id. Without it the model is trained from scratch.
"""

import json
import pathlib

import keras
from training_runs import make_parser, score_files, train

import keras_attention as ka


def score(task, questions):
    """Compute exact match and F1 against the closest answer, and against the author's answer."""
    predicted = [answer.answer for answer in task.predict(questions)]
    every = [[answer.text for answer in question.answers] for question in questions]
    scores = ka.training.score_answers(predicted, every, version="1.1")
    of_writer = ka.training.score_answers(predicted, [one[:1] for one in every], version="1.1")
    return {**scores, "writer": of_writer}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--zero-shot", type=pathlib.Path, help="SQuAD's JSON to be tested on, too")
    arguments = parser.parse_args()
    data = ka.data.from_question_files(
        train=arguments.data / "dev.tsv", test=arguments.data / "test.tsv", seed=arguments.seed
    )
    keras.utils.set_random_seed(arguments.seed)
    if arguments.checkpoint:
        task = ka.tasks.QuestionAnswerer.from_preset(arguments.checkpoint)
    else:
        task = ka.tasks.QuestionAnswerer.from_data(data, seed=arguments.seed)
    report = train(task, data, arguments)
    report |= {**score(task, data.test), **task.scores}
    if arguments.zero_shot:
        zero_shot = ka.data.from_question_files(test=arguments.zero_shot)
        report["zero_shot"] = score(task, zero_shot.test)
    if arguments.files:
        report |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps(report), flush=True)
