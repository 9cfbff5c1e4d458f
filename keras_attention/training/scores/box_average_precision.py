"""`BoxAveragePrecision`: an approximate average precision of boxes, to watch during training."""

import keras
import numpy as np
from keras import ops

from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.training.box_overlap import compute_overlaps, find_corners
from keras_attention.training.label_shapes import check_objects, match_weights

COCO = tuple(float(x) for x in np.round(np.arange(0.5, 1.0, 0.05), 2))


@keras.saving.register_keras_serializable(package="keras_attention")
class BoxAveragePrecision(OwnArguments, keras.metrics.Metric):
    """Approximate mean average precision (mAP) of predicted boxes, fast enough for every epoch.

    Use this metric to choose an epoch, and report `ka.training.score_boxes`, which runs COCO's own
    code. Each query predicts a box of its likeliest class. This box is assigned to the object of
    the class with the largest intersection over union (IoU). If an object gets several boxes, only
    the box with the highest score is correct, as in Pascal VOC (Everingham et al., 2010, section
    4.2). Scores are counted in `num_thresholds` bins, and the area under the precision-recall curve
    is a sum of steps. The result is a mean over classes and IoU thresholds.

    Args:
        num_classes: int, the number of classes without "no object".
        no_object: bool, whether the logits have an additional last class for "no object". With it,
            scores are a softmax over the logits, and without it a sigmoid of each.
        iou_thresholds: floats, the IoU that a correct box needs. COCO's ten thresholds by default.
        num_thresholds: int, the number of bins for scores between 0 and 1.

    `y_true` and `y_pred` are the dicts of labels, logits and boxes that `HungarianLoss` explains.

    ```python
    import numpy as np
    import keras_attention as ka

    metric = ka.training.BoxAveragePrecision(2)
    boxes = np.array([[[0.3, 0.3, 0.2, 0.2], [0.7, 0.7, 0.2, 0.2]]])
    truth = {"labels": np.array([[0, 1]]), "boxes": boxes}
    metric.update_state(truth, {"logits": np.array([[[2.0, -3.0], [-3.0, 2.0]]]), "boxes": boxes})
    assert abs(float(metric.result()) - 1.0) < 1e-6
    ```
    """

    own_arguments = ("num_classes", "no_object", "iou_thresholds", "num_thresholds")

    def __init__(
        self,
        num_classes,
        no_object=False,
        iou_thresholds=COCO,
        num_thresholds=200,
        name="box_average_precision",
        dtype=None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = check_whole_number("BoxAveragePrecision", "num_classes", num_classes)
        self.num_thresholds = check_whole_number(
            "BoxAveragePrecision", "num_thresholds", num_thresholds
        )
        self.no_object, self.iou_thresholds = bool(no_object), tuple(map(float, iou_thresholds))
        shape = (num_classes, num_thresholds)
        self.found = self.add_variable(shape, "zeros", name="found")
        self.right = self.add_variable((len(self.iou_thresholds), *shape), "zeros", name="right")
        self.objects = self.add_variable((num_classes,), "zeros", name="objects")

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_objects(type(self).__name__, y_true, y_pred)
        labels = ops.cast(y_true["labels"], "int32")
        logits = ops.cast(y_pred["logits"], "float32")
        shares = ops.softmax(logits)[..., :-1] if self.no_object else ops.sigmoid(logits)
        kinds = ops.cast(ops.argmax(shares, axis=-1), "int32")  # (B, Q)
        scores = ops.max(shares, axis=-1)
        bins = ops.cast(ops.floor(scores * self.num_thresholds), "int32")
        bins = ops.clip(bins, 0, self.num_thresholds - 1)
        cells = ops.reshape(kinds * self.num_thresholds + bins, (-1,))
        mine = find_corners(ops.expand_dims(ops.cast(y_pred["boxes"], "float32"), 2))
        theirs = find_corners(ops.expand_dims(ops.cast(y_true["boxes"], "float32"), 1))
        overlaps, _ = compute_overlaps(mine, theirs)  # (B, Q, M)
        same = ops.equal(ops.expand_dims(kinds, 2), ops.expand_dims(labels, 1))
        overlaps = ops.where(same, overlaps, 0.0)
        best = ops.one_hot(ops.argmax(overlaps, axis=-1), ops.shape(labels)[1])  # (B, Q, M)
        overlap = ops.max(overlaps, axis=-1)
        weights = self._read_weights(sample_weight, labels)  # (B, 1)
        for i, threshold in enumerate(self.iou_thresholds):
            near = ops.cast(ops.greater_equal(overlap, threshold), "float32")
            claims = best * ops.expand_dims(near * scores, 2)
            highest = ops.max(claims, axis=1, keepdims=True)  # (B, 1, M)
            right = ops.logical_and(claims > 0, claims >= highest)
            right = ops.cast(ops.any(right, axis=-1), "float32")
            row = ops.one_hot(i, len(self.iou_thresholds), dtype=self.dtype)
            counts = ops.expand_dims(self._count(weights * right, cells), 0)
            self.right.assign(self.right + ops.reshape(row, (-1, 1, 1)) * counts)
        self.found.assign(self.found + self._count(weights * ops.ones_like(scores), cells))
        counts = ops.one_hot(labels, self.num_classes) * ops.expand_dims(weights, -1)
        self.objects.assign(self.objects + ops.cast(ops.sum(counts, axis=(0, 1)), self.dtype))

    def _read_weights(self, sample_weight, labels):
        if sample_weight is None:
            return ops.ones((1, 1), "float32")
        shape = labels.shape[:1]
        weights = match_weights(type(self).__name__, sample_weight, shape, "float32")
        return ops.expand_dims(weights, -1)

    def _count(self, values, cells):
        total = self.num_classes * self.num_thresholds
        counts = ops.segment_sum(ops.reshape(values, (-1,)), cells, num_segments=total)
        return ops.cast(ops.reshape(counts, (self.num_classes, self.num_thresholds)), self.dtype)

    def result(self):
        boxes = ops.cumsum(ops.flip(self.found, axis=1), axis=1)  # highest scores first
        right = ops.cumsum(ops.flip(self.right, axis=2), axis=2)
        precision = ops.divide_no_nan(right, ops.broadcast_to(boxes, ops.shape(right)))
        steps = right - ops.pad(right[:, :, :-1], ((0, 0), (0, 0), (1, 0)))
        objects = ops.maximum(self.objects, 1.0)
        areas = ops.sum(precision * steps, axis=-1) / objects  # (thresholds, classes)
        present = ops.cast(self.objects > 0, self.dtype)
        return ops.divide_no_nan(ops.sum(ops.mean(areas, axis=0) * present), ops.sum(present))
