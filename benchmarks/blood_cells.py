"""Detection of blood cells: trained on the official training part of TFDS's `bccd`, tested on test.

Prints COCO's mean average precision, by its own tools, of the test part; and the processor's
minutes divided by two, which is what the training takes on two cores that do nothing else. The
development part chooses the epoch.

    python benchmarks/blood_cells.py [--queries 60] --backup FOLDER --save PRESET
"""

import json
import pathlib

from training_runs import make_parser, score_files, train

import keras_attention as ka


def score(task, examples):
    """COCO's scores of a part, with those of each class."""
    found = [task.predict([example], threshold=0.0)[0] for example in examples]
    wanted = [example.objects() for example in examples]
    scores = ka.training.score_boxes(wanted, found, labels=task.preprocessor.labels.names)
    by_label = {name: [round(x, 4) for x in both] for name, both in scores.pop("by_label").items()}
    return {name: round(value, 4) for name, value in scores.items()} | {"by_label": by_label}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--data-dir", type=pathlib.Path, help="where TFDS keeps its data")
    parser.add_argument("--queries", type=int, help="learned ones, in place of the grid's")
    parser.add_argument("--auxiliary", action="store_true", help="losses of every layer")
    parser.add_argument("--image-size", type=int, help="pixels of the longer side")
    parser.add_argument("--untested", action="store_true", help="score the development part only")
    given = parser.parse_args()
    data = ka.data.from_tfds_boxes("bccd", data_dir=given.data_dir, image_size=given.image_size)
    model = {"auxiliary": given.auxiliary, "seed": given.seed}
    model |= {} if given.queries is None else {"queries": given.queries}
    task = ka.tasks.ObjectDetector.from_data(data, **model)
    about = train(task, data, given)
    scores = {"dev": score(task, data.dev)}
    if not given.untested:
        scores["test"] = score(task, data.test)
        if given.files:
            scores |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps({**about, **scores, "chosen": task.scores}), flush=True)
