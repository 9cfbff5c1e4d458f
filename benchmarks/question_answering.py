"""Question answering on QAMR (Michael et al., 2018): trained on its dev file, tested on test.

Prints exact match and F1, against the best of the three answers that people gave, as the script of
SQuAD does it, and against the writer's own; and the processor's minutes divided by two, which is
what the training takes on two cores that do nothing else.

    python benchmarks/question_answering.py DATA [--checkpoint CHECKPOINT] --backup FOLDER

DATA is a folder with dev.tsv, test.tsv and wiki-sentences.tsv. CHECKPOINT is a folder of Hugging
Face's files, or an id; without one the model is trained from scratch.
"""

import json
import pathlib

import keras
from training_runs import make_parser, score_files, train

import keras_attention as ka


def score(task, questions):
    """Exact match and F1, against the best of all answers, and against the writer's own."""
    found = [answer.answer for answer in task.predict(questions)]
    every = [[answer.text for answer in question.answers] for question in questions]
    scores = ka.training.score_answers(found, every, version="1.1")
    of_writer = ka.training.score_answers(found, [one[:1] for one in every], version="1.1")
    return {**scores, "writer": of_writer}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--zero-shot", type=pathlib.Path, help="SQuAD's JSON to be tested on, too")
    given = parser.parse_args()
    data = ka.data.from_question_files(
        train=given.data / "dev.tsv", test=given.data / "test.tsv", seed=given.seed
    )
    keras.utils.set_random_seed(given.seed)
    if given.checkpoint:
        task = ka.tasks.QuestionAnswerer.from_preset(given.checkpoint)
    else:
        task = ka.tasks.QuestionAnswerer.from_data(data, seed=given.seed)
    about = train(task, data, given)
    about |= {**score(task, data.test), **task.scores}
    if given.zero_shot:
        others = ka.data.from_question_files(test=given.zero_shot)
        about["zero_shot"] = score(task, others.test)
    if given.files:
        about |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps(about), flush=True)
