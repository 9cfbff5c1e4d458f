"""Emotions of comments (GoEmotions, Demszky et al., 2020), with the official splits.

    python benchmarks/multi_label.py [--checkpoint CHECKPOINT] --backup FOLDER

Prints macro, micro and sample F1, with thresholds chosen on the development split, and the CPU
minutes of training divided by two.

CHECKPOINT is a folder with Hugging Face's files, or an id. Without it the model is trained from
scratch. With `--pause MINUTES` the run stops after this time, and the same command resumes it.
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
    arguments = parser.parse_args()
    data = ka.data.from_tfds("goemotions", data_dir=arguments.data_dir)
    keras.utils.set_random_seed(arguments.seed)
    if arguments.checkpoint:
        task = ka.tasks.MultiLabelClassifier.from_preset(arguments.checkpoint)
    else:
        task = ka.tasks.MultiLabelClassifier.from_data(data, seed=arguments.seed)
    report = train(task, data, arguments)
    report |= {**task.evaluate(data), **task.scores}
    if arguments.files:
        report |= score_files(task, lambda task: task.evaluate(data))
    print(json.dumps(report), flush=True)
