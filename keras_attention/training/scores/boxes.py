"""`score_boxes`: the mean average precision of predicted boxes, computed with COCO's own code."""

import contextlib
import io

import numpy as np

from keras_attention.files.extras import import_extra

NAMES = {"map": 0, "map50": 1, "map75": 2, "map_small": 3, "map_medium": 4, "map_large": 5}


def score_boxes(actual, detections, *, labels=None):
    """Score predicted boxes by the average precisions of COCO (Lin et al., 2014).

    Args:
        actual: list with one list of objects per image. An object is (label, box) or (label, box,
            is_crowd), and a box is (x0, y0, x1, y1) in pixels.
        detections: list with one list of predictions (label, score, box) per image. For each image
            and class, only the 100 predictions with the highest scores count. Predictions of a
            class that is not in `labels` do not count.
        labels: list of the classes to average over. None means the classes that occur in `actual`.

    Returns:
        A dict, computed with `pycocotools`: `"map"` is the mean over IoU thresholds 0.5,
        0.55, ... 0.95. `"map50"` and `"map75"` use only the threshold 0.5 or 0.75. `"map_small"`,
        `"map_medium"` and `"map_large"` are for objects of less than 32² pixels, from 32² to 96²,
        and larger, or NaN without such objects. `"by_label"` is a dict from label to (map, map50).

    Raises:
        ValueError: the lists differ in length, or an object of `actual` has a label that is not in
            `labels`.

    ```python
    import keras_attention as ka

    cat = ("cat", (10, 10, 40, 50))
    detections = [("cat", 0.9, (11, 10, 40, 50)), ("dog", 0.3, (60, 60, 80, 80))]
    scores = ka.training.score_boxes([[cat]], [detections])
    assert scores["map50"] > 0.999 and scores["by_label"]["cat"][1] > 0.999
    ```
    """
    feature = ("ka.training.score_boxes", "pycocotools", "detection")
    coco, cocoeval = (
        import_extra(f"pycocotools.{name}", *feature) for name in ("coco", "cocoeval")
    )
    if len(actual) != len(detections):
        raise ValueError(
            f"{len(actual)} images with objects, and {len(detections)} with detections: expected "
            "lists for the same images. Give an empty list for an image without detections."
        )
    occurring = {entry[0] for objects in actual for entry in objects}
    labels = sorted(occurring) if labels is None else list(labels)
    numbers = {label: k for k, label in enumerate(labels, start=1)}
    if unknown := sorted(occurring - set(numbers)):
        raise ValueError(
            f"An object has the label {unknown[0]!r}, which is not in labels={labels}: expected "
            "all labels of the objects. Add this label, or leave labels out."
        )
    truth, nothing = coco.COCO(), coco.COCO()
    truth.dataset = {
        "images": [{"id": k} for k in range(len(actual))],
        "categories": [{"id": k, "name": label} for label, k in numbers.items()],
        "annotations": _list_annotations(actual, numbers),
    }
    nothing.dataset = truth.dataset | {"annotations": []}
    results = _list_detections(detections, numbers)
    with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints its progress
        truth.createIndex()
        nothing.createIndex()
        predicted = (
            truth.loadRes(results) if results else nothing
        )  # loadRes fails for an empty list
        run = cocoeval.COCOeval(truth, predicted, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    stats = {name: float(run.stats[k]) for name, k in NAMES.items()}
    scores = {name: x if x >= 0 else float("nan") for name, x in stats.items()}
    return scores | {"by_label": _read_labels(run, [x for x in labels if x in occurring], numbers)}


def _list_annotations(actual, numbers):
    annotations = []
    for image, objects in enumerate(actual):
        for label, box, *crowd in objects:
            sides = _to_sides(box)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": numbers[label],
                    "bbox": sides,
                    "area": sides[2] * sides[3],
                    "iscrowd": int(bool(crowd and crowd[0])),
                }
            )
    return annotations


def _list_detections(detections, numbers):
    return [
        {
            "image_id": image,
            "category_id": numbers[label],
            "bbox": _to_sides(box),
            "score": float(score),
        }
        for image, boxes in enumerate(detections)
        for label, score, box in boxes
        if label in numbers
    ]


def _to_sides(box):
    """Return a box (x0, y0, x1, y1) in COCO's format, [x, y, width, height]."""
    x0, y0, x1, y1 = map(float, box)
    return [x0, y0, x1 - x0, y1 - y0]


def _read_labels(run, labels, numbers):
    """Return {label: (map, map50)} from a finished `COCOeval`, for objects of all sizes.

    `numbers` is a dict from label to its category id in `run`.
    """
    table = run.eval["precision"][:, :, :, 0, -1]  # (overlaps, recalls, classes)
    indices = {number: k for k, number in enumerate(run.params.catIds)}
    by_label = {}
    for label in labels:
        values = table[:, :, indices[numbers[label]]]
        by_label[label] = tuple(
            float(np.mean(part[part > -1])) if np.any(part > -1) else float("nan")
            for part in (values, values[0])
        )
    return by_label
