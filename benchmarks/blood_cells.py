"""Detection of blood cells in TFDS's `bccd`, with the official splits.

    python benchmarks/blood_cells.py [--queries 60] --backup FOLDER --save PRESET

Prints COCO's mean average precision on the test split, and the CPU minutes of training divided by
two. The epoch is chosen on the development split.
"""

import json
import pathlib

from training_runs import make_parser, score_files, train

import keras_attention as ka


def score(task, examples):
    """Compute COCO's scores on a split, in total and for each class."""
    detections = [task.predict([example], threshold=0.0)[0] for example in examples]
    objects = [example.objects() for example in examples]
    scores = ka.training.score_boxes(objects, detections, labels=task.preprocessor.labels.names)
    by_label = {k: [round(x, 4) for x in pair] for k, pair in scores.pop("by_label").items()}
    return {name: round(value, 4) for name, value in scores.items()} | {"by_label": by_label}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--data-dir", type=pathlib.Path, help="where TFDS keeps its data")
    parser.add_argument("--queries", type=int, help="number of learned queries instead of a grid")
    parser.add_argument("--auxiliary", action="store_true", help="losses of every layer")
    parser.add_argument("--image-size", type=int, help="size of the longer side")
    parser.add_argument("--untested", action="store_true", help="score the development part only")
    arguments = parser.parse_args()
    data = ka.data.from_tfds_boxes(
        "bccd", data_dir=arguments.data_dir, image_size=arguments.image_size
    )
    model = {"auxiliary": arguments.auxiliary, "seed": arguments.seed}
    model |= {} if arguments.queries is None else {"queries": arguments.queries}
    task = ka.tasks.ObjectDetector.from_data(data, **model)
    report = train(task, data, arguments)
    scores = {"dev": score(task, data.dev)}
    if not arguments.untested:
        scores["test"] = score(task, data.test)
        if arguments.files:
            scores |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps({**report, **scores, "chosen": task.scores}), flush=True)
