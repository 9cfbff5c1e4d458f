"""Scores of boxes: COCO's, and the fast metric for every epoch."""

import contextlib
import io
import json

import numpy as np
import pytest
from pycocotools import coco, cocoeval

import keras_attention as ka

LABELS = ["cat", "dog", "bird"]
random = np.random.default_rng(0)


def draw_image(count=6):
    """Draw objects (label, box, crowd) in an image of 200 x 100 pixels, and boxes near them."""
    objects, predicted = [], []
    for _ in range(random.integers(1, count)):
        x, y, w, h = random.uniform(0, 120), random.uniform(0, 60), *random.uniform(8, 70, 2)
        label = LABELS[random.integers(3)]
        objects.append((label, (x, y, x + w, y + h), bool(random.random() < 0.1)))
        for _ in range(random.integers(0, 3)):
            box = np.array([x, y, x + w, y + h]) + random.normal(scale=3, size=4)
            label = label if random.random() < 0.8 else LABELS[random.integers(3)]
            predicted.append((label, float(random.random()), tuple(map(float, box))))
    return objects, predicted


def evaluate_by_coco(folder, actual, predicted):
    """Return the scores of pycocotools for files in its own format."""
    truth = {
        "info": {},
        "images": [{"id": 10 + i} for i in range(len(actual))],
        "categories": [{"id": 7 * k + 3, "name": name} for k, name in enumerate(LABELS)],
        "annotations": [],
    }
    numbers = {entry["name"]: entry["id"] for entry in truth["categories"]}
    for i, objects in enumerate(actual):
        for label, (x0, y0, x1, y1), crowd in objects:
            truth["annotations"].append(
                {
                    "id": 100 + len(truth["annotations"]),
                    "image_id": 10 + i,
                    "category_id": numbers[label],
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "area": (x1 - x0) * (y1 - y0),
                    "iscrowd": int(crowd),
                }
            )
    (folder / "truth.json").write_text(json.dumps(truth))
    ids = [10 + i for i in range(len(actual))]
    results = ka.data.list_coco_results(predicted, ids, folder / "truth.json")
    (folder / "results.json").write_text(json.dumps(results))
    with contextlib.redirect_stdout(io.StringIO()):
        truth_file = coco.COCO(str(folder / "truth.json"))
        run = cocoeval.COCOeval(
            truth_file, truth_file.loadRes(str(folder / "results.json")), "bbox"
        )
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run.stats


def test_scores_equal_pycocotools(tmp_path):
    actual, predicted = zip(*(draw_image() for _ in range(40)), strict=True)
    scores = ka.training.score_boxes(actual, predicted, labels=LABELS)
    expected = evaluate_by_coco(tmp_path, actual, predicted)
    names = ("map", "map50", "map75", "map_small", "map_medium", "map_large")
    for name, value in zip(names, expected, strict=False):
        assert scores[name] == pytest.approx(value, abs=1e-12) or (
            value == -1 and np.isnan(scores[name])
        )
    assert 0.1 < scores["map"] < scores["map50"] < 1
    by_label = np.mean(list(scores["by_label"].values()), axis=0)
    np.testing.assert_allclose(by_label, expected[:2], atol=1e-9)


def test_scores_without_objects_or_detections():
    cat = [("cat", (0, 0, 10, 10), False)]
    nothing = ka.training.score_boxes([cat], [[]])
    assert nothing["map"] == 0.0 and nothing["by_label"] == {"cat": (0.0, 0.0)}
    assert nothing["map_small"] == 0.0 and np.isnan(nothing["map_large"])
    assert np.isnan(ka.training.score_boxes([[]], [[]])["map"])
    crowd = [[("cat", (0, 0, 10, 10), True)]]
    assert np.isnan(ka.training.score_boxes(crowd, [[("cat", 1.0, (0, 0, 10, 10))]])["map"])
    with pytest.raises(ValueError, match="1 images with objects, and 2 with detections"):
        ka.training.score_boxes([cat], [[], []])
    with pytest.raises(ValueError, match="has the label 'cat', which is not in labels="):
        ka.training.score_boxes([cat], [[]], labels=["dog"])


def as_logits(score):
    return np.log(score / (1 - score))


def make_batch(actual, predicted):
    """Return outputs of a model with these boxes, one for each query, and labels."""
    queries, objects = (max(map(len, part)) for part in (predicted, actual))
    logits = np.full((len(predicted), queries, 3), -50.0, "float32")
    boxes = np.full((len(predicted), queries, 4), 0.5, "float32")
    labels = np.full((len(predicted), objects), -1, "int32")
    truth = np.zeros((len(predicted), objects, 4), "float32")

    def middle(box):
        x0, y0, x1, y1 = np.array(box) / [200, 100, 200, 100]
        return (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0

    for i, (image_objects, mine) in enumerate(zip(actual, predicted, strict=True)):
        for m, (label, box, _) in enumerate(image_objects):
            labels[i, m], truth[i, m] = LABELS.index(label), middle(box)
        for q, (label, score, box) in enumerate(mine):
            logits[i, q, LABELS.index(label)], boxes[i, q] = as_logits(score), middle(box)
    return {"labels": labels, "boxes": truth}, {"logits": logits, "boxes": boxes}


def test_the_metric_is_close_to_coco():
    """Allow differences due to bins of scores, 101 recalls, and the choice of the right box."""
    pairs = [draw_image() for _ in range(60)]
    actual = [[(*item[:2], False) for item in objects] for objects, _ in pairs]
    predicted = [mine or [("cat", 1e-3, (0.0, 0.0, 1.0, 1.0))] for _, mine in pairs]
    scores = ka.training.score_boxes(actual, predicted, labels=LABELS)
    for thresholds, name in ((None, "map"), ((0.5,), "map50")):
        options = {} if thresholds is None else {"iou_thresholds": thresholds}
        metric = ka.training.BoxAveragePrecision(3, num_thresholds=1000, **options)
        for start in range(0, 60, 20):
            metric.update_state(
                *make_batch(actual[start : start + 20], predicted[start : start + 20])
            )
        assert float(metric.result()) == pytest.approx(scores[name], abs=0.03)


def test_second_boxes_and_wrong_classes_are_wrong():
    box = np.array([[[0.5, 0.5, 0.2, 0.2]]], "float32")
    truth = {"labels": np.array([[1]]), "boxes": box}

    def measure(*scores, no_object=False):
        metric = ka.training.BoxAveragePrecision(2, no_object)
        boxes = np.repeat(box, len(scores), axis=1)
        metric.update_state(truth, {"logits": np.array([scores], "float32"), "boxes": boxes})
        return float(metric.result())

    assert measure([-5, 2]) == 1.0
    assert measure([-5, 2], [-5, 1]) == 1.0  # the second comes after full recall
    assert measure([-5, 2], [3, -5]) == 1.0  # objects of the other class do not count
    assert measure([3, 2]) == 0.0
    assert measure([-5, 2, 1], no_object=True) == 1.0


def test_the_metric_round_trip():
    metric = ka.training.BoxAveragePrecision(4, True, (0.5, 0.7), 50, name="map")
    again = ka.training.BoxAveragePrecision.from_config(metric.get_config())
    assert again.get_config() == metric.get_config() and again.name == "map"
