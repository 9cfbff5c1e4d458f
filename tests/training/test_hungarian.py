"""The set loss of detectors, compared with definitions in NumPy."""

import itertools

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests import gradients
from tests.backends.marks import slow_on_tensorflow

B, Q, M, C = 2, 4, 3, 3
random = np.random.default_rng(0)


def draw_boxes(*shape):
    sides = random.uniform(0.1, 0.4, (*shape, 2))
    middles = random.uniform(0.25, 0.75, (*shape, 2))
    return np.concatenate([middles, sides], axis=-1).astype("float32")


def to_corners(box):
    cx, cy, w, h = map(float, box)
    return cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2


def overlap(first, second):
    """Compute (IoU, GIoU) of two boxes by corners: Rezatofighi et al. (2019), algorithm 1."""
    (a0, b0, a1, b1), (c0, d0, c1, d1) = first, second
    shared = max(0, min(a1, c1) - max(a0, c0)) * max(0, min(b1, d1) - max(b0, d0))
    union = (a1 - a0) * (b1 - b0) + (c1 - c0) * (d1 - d0) - shared
    hull = (max(a1, c1) - min(a0, c0)) * (max(b1, d1) - min(b0, d0))
    return shared / union, shared / union - (hull - union) / hull


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((0, 0, 2, 2), (1.0, 1.0)),
        ((3, 0, 5, 2), (0.0, -0.2)),  # a gap of 2 in a hull of 10
        ((0.5, 0.5, 1.5, 1.5), (0.25, 0.25)),
        ((2, 0, 4, 2), (0.0, 0.0)),
    ],
)
def test_overlaps_of_simple_boxes(second, expected):
    actual = ka.training.compute_overlaps(np.array([[0.0, 0, 2, 2]]), np.array([second], "float32"))
    np.testing.assert_allclose(np.array(actual)[:, 0], expected, atol=1e-6)


def test_overlaps_of_all_pairs_equal_the_definition():
    first, second = draw_boxes(5), draw_boxes(7)
    corners = [np.array([to_corners(box) for box in boxes]) for boxes in (first, second)]
    actual = ka.training.compute_overlaps(corners[0][:, None], corners[1][None])
    for i, j in itertools.product(range(5), range(7)):
        expected = overlap(to_corners(first[i]), to_corners(second[j]))
        np.testing.assert_allclose([actual[0][i, j], actual[1][i, j]], expected, atol=1e-5)
    iou = keras.utils.bounding_boxes.compute_iou(*corners, bounding_box_format="xyxy")
    np.testing.assert_allclose(actual[0], iou, atol=1e-5)


def test_boxes_without_area_have_finite_overlaps():
    nothing = np.zeros((1, 4), "float32")
    for actual in ka.training.compute_overlaps(nothing, nothing):
        assert np.array(actual).tolist() == [0.0]


def find_best(costs):
    """Search all assignments of objects to queries for the cheapest."""
    queries, objects = costs.shape
    every = itertools.permutations(range(queries), objects)
    return min(every, key=lambda chosen: sum(costs[q, m] for m, q in enumerate(chosen)))


def test_matches_are_the_cheapest_and_padding_gets_none():
    costs = random.normal(size=(B, 5, M)).astype("float32")
    labels = np.array([[0, 2, 1], [1, -1, 0]])
    actual = np.array(ka.training.match_objects(costs, labels))
    assert actual.dtype == np.int32
    assert tuple(actual[0]) == find_best(costs[0])
    first, nothing, last = actual[1]
    assert nothing == -1 and (first, last) == find_best(costs[1][:, [0, 2]])


def test_more_objects_than_queries_leaves_some_unmatched():
    costs = np.array([[[3.0, 1.0, 2.0], [2.0, 1.5, 9.0]]], "float32")
    actual = np.array(ka.training.match_objects(costs, np.zeros((1, 3), "int32")))
    assert actual.tolist() == [[1, 0, -1]]


def test_a_nan_cost_is_the_worst():
    costs = np.array([[[np.nan], [np.inf], [7.0]]], "float32")
    assert np.array(ka.training.match_objects(costs, np.array([[0]]))).tolist() == [[2]]


def draw_batch(classes):
    labels = np.array([[0, 2, -1], [1, -1, -1]], "int32")
    truth = {"labels": labels, "boxes": draw_boxes(B, M)}
    logits = random.normal(size=(B, Q, classes)).astype("float32")
    return truth, {"logits": logits, "boxes": draw_boxes(B, Q)}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def focal(logit, target):
    """Compute Lin et al. (2017), equation 5."""
    p = sigmoid(logit) if target else 1 - sigmoid(logit)
    return -(0.25 if target else 0.75) * (1 - p) ** 2 * np.log(p)


def varifocal(logit, overlap):
    """Compute Zhang et al. (2021), equation 2, for an overlap, or for "no object"."""
    p = sigmoid(logit)
    if overlap > 0:
        return -overlap * (overlap * np.log(p) + (1 - overlap) * np.log(1 - p))
    return -0.75 * p**2 * np.log(1 - p)


def compute_by_definition(truth, predicted, kind):
    """Compute Carion et al. (2020), equations 1 and 2, with the focal form of Zhu et al. (2021)."""
    objects = int((truth["labels"] >= 0).sum())
    total, weighted, weights = 0.0, 0.0, 0.0
    for i in range(B):
        labels = [k for k in truth["labels"][i] if k >= 0]
        logits, boxes = predicted["logits"][i].astype("float64"), predicted["boxes"][i]
        shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        parts = np.zeros((Q, len(labels), 3))
        for q, (m, k) in itertools.product(range(Q), enumerate(labels)):
            l1 = np.abs(boxes[q] - truth["boxes"][i, m]).sum()
            _, giou = overlap(to_corners(boxes[q]), to_corners(truth["boxes"][i, m]))
            of_class = -shares[q, k]
            if kind != "cross_entropy":
                of_class = 2 * (focal(logits[q, k], True) - focal(logits[q, k], False))
            parts[q, m] = of_class, l1, giou
        chosen = find_best(parts[..., 0] + 5 * parts[..., 1] - 2 * parts[..., 2])
        for m, q in enumerate(chosen):
            total += (5 * parts[q, m, 1] + 2 * (1 - parts[q, m, 2])) / objects
        of_query = {q: labels[m] for m, q in enumerate(chosen)}
        overlaps = {
            q: overlap(to_corners(boxes[q]), to_corners(truth["boxes"][i, m]))[0]
            for m, q in enumerate(chosen)
        }
        for q in range(Q):
            if kind == "varifocal":
                for k in range(C):
                    target = overlaps[q] if of_query.get(q) == k else 0.0
                    total += 2 * varifocal(logits[q, k], target) / objects
                continue
            if kind == "focal":
                for k in range(C):
                    total += 2 * focal(logits[q, k], of_query.get(q) == k) / objects
                continue
            weight = 1.0 if q in of_query else 0.1
            weighted -= weight * np.log(shares[q, of_query.get(q, C)])
            weights += weight
    return total if kind != "cross_entropy" else total + weighted / weights


@pytest.mark.parametrize("kind", ["focal", "varifocal", "cross_entropy"])
def test_the_loss_equals_the_definition(kind):
    truth, predicted = draw_batch(C + (kind == "cross_entropy"))
    loss = ka.training.HungarianLoss(kind)
    expected = compute_by_definition(truth, predicted, kind)
    np.testing.assert_allclose(float(loss(truth, predicted)), expected, rtol=1e-5)
    again = ka.training.HungarianLoss.from_config(loss.get_config())
    np.testing.assert_allclose(float(again(truth, predicted)), expected, rtol=1e-5)


def test_losses_of_auxiliary_outputs_are_added():
    truth, last = draw_batch(C)
    _, first = draw_batch(C)
    loss = ka.training.HungarianLoss()
    outputs = last | {f"auxiliary_{name}": x[:, None] for name, x in first.items()}
    expected = float(loss(truth, last)) + float(loss(truth, first))
    np.testing.assert_allclose(float(loss(truth, outputs)), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["focal", "varifocal", "cross_entropy"])
def test_one_to_many_outputs_repeat_objects(kind):
    """Compare with the loss of repeated objects, each with its own query."""
    classes = C + (kind == "cross_entropy")
    truth, last = draw_batch(classes)
    _, many = draw_batch(classes)
    twice = {name: np.concatenate([x, x], axis=1) for name, x in truth.items()}
    order = np.argsort(twice["labels"] < 0, axis=1, kind="stable")  # padding last
    twice = {
        name: np.take_along_axis(x, order if x.ndim == 2 else order[..., None], axis=1)
        for name, x in twice.items()
    }
    expected = compute_by_definition(truth, last, kind) + compute_by_definition(twice, many, kind)
    loss = ka.training.HungarianLoss(kind, one_to_many=2)
    outputs = last | {f"one_to_many_{name}": x for name, x in many.items()}
    np.testing.assert_allclose(float(loss(truth, outputs)), expected, rtol=1e-5)
    again = ka.training.HungarianLoss.from_config(loss.get_config())
    np.testing.assert_allclose(float(again(truth, outputs)), expected, rtol=1e-5)
    usual, six = (ka.training.HungarianLoss(kind, **x) for x in ({}, {"one_to_many": 6}))
    assert float(usual(truth, outputs)) == float(six(truth, outputs)) != float(loss(truth, outputs))
    with pytest.raises(ValueError, match="one_to_many=0"):
        ka.training.HungarianLoss(one_to_many=0)


@pytest.mark.parametrize("kind", ["focal", "varifocal", "cross_entropy"])
def test_loss_without_objects_is_finite_and_ignores_padding(kind):
    truth, predicted = draw_batch(C + (kind == "cross_entropy"))
    loss = ka.training.HungarianLoss(kind)
    wider = {
        "labels": np.pad(truth["labels"], [(0, 0), (0, 2)], constant_values=-1),
        "boxes": np.pad(truth["boxes"], [(0, 0), (0, 2), (0, 0)]),
    }
    np.testing.assert_allclose(
        float(loss(wider, predicted)), float(loss(truth, predicted)), rtol=1e-6
    )
    nothing = truth | {"labels": np.full((B, M), -1)}
    assert 0 < float(loss(nothing, predicted)) < 100


def test_varifocal_targets_have_no_gradient():
    truth, predicted = draw_batch(C)
    predicted["boxes"][:, :M] = truth["boxes"] + np.float32(
        0.02
    )  # boxes that overlap their objects
    loss = ka.training.HungarianLoss("varifocal", l1_weight=0.0, giou_weight=0.0)

    def compute(logits, boxes):
        return loss(truth, {"logits": logits, "boxes": boxes})

    _, slopes = gradients.value_and_gradients(compute, [predicted["logits"], predicted["boxes"]])
    of_logits, of_boxes = (0.0 if x is None else np.array(x) for x in slopes)
    assert np.all(of_boxes == 0) and np.any(of_logits != 0)


def test_weights_of_images_apply():
    truth, predicted = draw_batch(C)
    loss = ka.training.HungarianLoss()
    halves = [float(loss(truth, predicted, sample_weight=np.array(w))) for w in ([1, 0], [0, 1])]
    np.testing.assert_allclose(sum(halves), float(loss(truth, predicted)), rtol=1e-5)


def test_an_unknown_classification_is_refused():
    with pytest.raises(ValueError, match="one of 'focal', 'varifocal', 'cross_entropy'"):
        ka.training.HungarianLoss("softmax")


@slow_on_tensorflow
def test_the_loss_trains_a_model_in_fit():
    images = keras.Input((4, 4, 1))
    x = keras.layers.Reshape((Q, 4))(images)
    boxes = keras.layers.Dense(4, "sigmoid", name="boxes")(x)
    model = keras.Model(images, {"logits": keras.layers.Dense(C)(x), "boxes": boxes})
    model = ka.training.JointModel(model)
    metric = ka.training.BoxAveragePrecision(C)
    model.compile(
        keras.optimizers.Adam(0.05), ka.training.HungarianLoss(), [metric], jit_compile=False
    )
    truth, _ = draw_batch(C)
    with gradients.enabled():
        history = model.fit(random.normal(size=(B, 4, 4, 1)), truth, epochs=12, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert "box_average_precision" in history
