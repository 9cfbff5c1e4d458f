"""Emotions of comments (GoEmotions, Demszky et al., 2020): trained, and tested on official parts.

Prints macro, micro and sample F1 with thresholds from the development part, and the processor's
minutes divided by two, which is what the training takes on two cores that do nothing else.

    python benchmarks/multi_label.py [--checkpoint CHECKPOINT] --backup FOLDER

CHECKPOINT is a folder of Hugging Face's files, or an id; without one the model is trained from
scratch. With --pause the run stops after so many minutes, and the same command goes on.
"""

import json
import pathlib

import keras
from training_runs import make_parser, score_files, train

import keras_attention as ka

if __name__ == "__main__":
    parser = make_parser(__doc__, balance=float)
    parser.add_argument("--checkpoint")
    parser.add_argument("--data-dir", type=pathlib.Path, help="where TFDS keeps its data")
    given = parser.parse_args()
    data = ka.data.from_tfds("goemotions", data_dir=given.data_dir)
    keras.utils.set_random_seed(given.seed)
    if given.checkpoint:
        task = ka.tasks.MultiLabelClassifier.from_preset(given.checkpoint)
    else:
        task = ka.tasks.MultiLabelClassifier.from_data(data, seed=given.seed)
    about = train(task, data, given)
    about |= {**task.evaluate(data), **task.scores}
    if given.files:
        about |= score_files(task, lambda task: task.evaluate(data))
    print(json.dumps(about), flush=True)
