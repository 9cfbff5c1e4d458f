"""Mean average precision of boxes by COCO's own tools."""

import contextlib
import io

import numpy as np

from keras_attention.files.extras import import_extra

NAMES = {"map": 0, "map50": 1, "map75": 2, "map_small": 3, "map_medium": 4, "map_large": 5}


def score_boxes(actual, detections, *, labels=None):
    """Compute COCO's average precisions with `pycocotools` (Lin et al., 2014).

    Args:
        actual: list, for each image its objects: (label, box) or (label, box, whether it is a
            crowd), where a box is (x0, y0, x1, y1) in pixels.
        detections: list, for each image its predictions: (label, score, box). The 100 best count.
        labels: the names of all classes to average over. None for those in `actual`.

    Returns:
        dict: `"map"`, the mean over overlaps of 0.5, 0.55, ... 0.95; `"map50"` and `"map75"` at one
        overlap; `"map_small"`, `"map_medium"`, `"map_large"` for objects of less than 32² pixels,
        less than 96², and the rest, NaN where there are none; `"by_label"`, a dict of label ->
        (map, map50).

    ```python
    import keras_attention as ka

    cat = ("cat", (10, 10, 40, 50))
    found = [("cat", 0.9, (11, 10, 40, 50)), ("dog", 0.3, (60, 60, 80, 80))]
    scores = ka.training.score_boxes([[cat]], [found])
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
            "lists of the same images. Give an empty list where nothing was found."
        )
    occurring = {entry[0] for objects in actual for entry in objects}
    labels = sorted(occurring) if labels is None else list(labels)
    numbers = {label: k for k, label in enumerate(labels, start=1)}
    if unknown := sorted(occurring - set(numbers)):
        raise ValueError(
            f"An object has the label {unknown[0]!r}, and labels={labels}: expected all labels of "
            "the objects. Add it, or leave labels out."
        )
    truth, nothing = coco.COCO(), coco.COCO()
    truth.dataset = {
        "images": [{"id": k} for k in range(len(actual))],
        "categories": [{"id": k, "name": label} for label, k in numbers.items()],
        "annotations": _list_annotations(actual, numbers),
    }
    nothing.dataset = truth.dataset | {"annotations": []}
    results = _list_detections(detections, numbers)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints as it goes
        truth.createIndex()
        nothing.createIndex()
        predicted = truth.loadRes(results) if results else nothing  # it takes no empty list
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
    """Convert (x0, y0, x1, y1) to COCO's [x, y, width, height]."""
    x0, y0, x1, y1 = map(float, box)
    return [x0, y0, x1 - x0, y1 - y0]


def _read_labels(run, labels, numbers):
    """Return {label: (map, map50)} over objects of every size."""
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
