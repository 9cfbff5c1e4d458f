"""`HungarianLoss`: matches each object of an image with one query, and computes the loss."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, shapes
from keras_attention.files.extras import import_extra
from keras_attention.training.box_overlap import compute_overlaps, find_corners
from keras_attention.training.label_shapes import check_objects, shape_of
from keras_attention.training.replicas import GlobalMeanLoss, sum_over_replicas

FOCUS, BALANCE = 2.0, 0.25  # gamma and alpha of the focal loss (Lin et al., 2017, table 1)
NEGATIVE = 0.75  # alpha of the varifocal loss (Zhang et al., 2021)
KINDS = ("focal", "varifocal", "cross_entropy")
WORST = 1e6  # replaces NaN and infinite costs


@keras.saving.register_keras_serializable(package="keras_attention")
class HungarianLoss(GlobalMeanLoss):
    """Loss of `ka.models.object_detector`, the set loss of DETR (Carion et al., 2020, section 3.1).

    The model predicts a class and a box from each of Q queries. The loss matches each of the M
    objects of an image with a different query, so that the sum of costs is minimal. A matched query
    is trained to predict the class of its object (classification loss) and the box (L1 and
    generalized IoU). All other queries are trained to predict "no object". The sum over an image is
    divided by the mean number of objects per image of the batch. The auxiliary outputs of the
    model, and its one-to-many outputs, are matched separately, and their losses are added.

    Compile the loss with `ka.training.JointModel`, because the model has several outputs. On
    TensorFlow pass `jit_compile=False` to `compile`, because SciPy runs on the CPU.

    Args:
        classification: str. `"focal"` is a sigmoid per class with the focal loss (Lin et al.,
            2017), as in Deformable DETR (Zhu et al., 2021). `"varifocal"` is a sigmoid trained to
            predict the IoU of the box and its object, so that the best boxes get the highest scores
            (Zhang et al., 2021, *VarifocalNet*, equation 2). Matching uses the costs of `"focal"`,
            as in RT-DETR. `"cross_entropy"` is a softmax whose last class is "no object", as in
            DETR.
        class_weight: float, weight of the classification in both loss and cost. None means 1 for
            `"cross_entropy"`, and 2 otherwise.
        l1_weight, giou_weight: float, weights of the two box terms in both loss and cost.
        no_object_weight: float, weight of the queries without an object. It applies only to
            `"cross_entropy"`, which is a weighted mean over queries.
        one_to_many: int, the number of queries that are matched with each object in the one-to-many
            outputs (6 in Jia et al., 2023, *DETRs with Hybrid Matching*). They need far more
            queries than objects to learn "no object".
        reduction, name, dtype: the arguments of every Keras loss.

    Call arguments:
        y_true: dict of `"labels"`, int (B, M), padded with -1, and `"boxes"`, float (B, M, 4), as
            (cx, cy, w, h) relative to the width and height of the image.
        y_pred: dict, the outputs of `ka.models.object_detector`.
        sample_weight: (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    loss = ka.training.HungarianLoss()
    box = [[[0.5, 0.5, 0.2, 0.2]]]
    truth = {"labels": np.array([[1]]), "boxes": np.array(box)}
    right = {"logits": np.array([[[-9.0, -9.0], [-9.0, 9.0]]]), "boxes": np.repeat(box, 2, axis=1)}
    wrong = {"logits": np.array([[[9.0, -9.0], [-9.0, -9.0]]]), "boxes": np.repeat(box, 2, axis=1)}
    assert float(loss(truth, right)) < 0.01 < float(loss(truth, wrong))
    ```
    """

    default_name = "hungarian_loss"
    own_arguments = (
        *("classification", "class_weight", "l1_weight", "giou_weight"),
        *("no_object_weight", "one_to_many"),
    )

    def __init__(
        self,
        classification="focal",
        class_weight=None,
        l1_weight=5.0,
        giou_weight=2.0,
        no_object_weight=0.1,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
        one_to_many=6,
    ):
        super().__init__(reduction, name, dtype)
        self.classification, self.class_weight = classification, class_weight
        checks.check_choice(self, "classification", KINDS)
        self.l1_weight, self.giou_weight = l1_weight, giou_weight
        self.no_object_weight = no_object_weight
        self.one_to_many = one_to_many
        checks.check_whole_numbers(self, "one_to_many")

    @property
    def _class_weight(self):
        usual = 1.0 if self.classification == "cross_entropy" else 2.0
        return usual if self.class_weight is None else self.class_weight

    def get_loss_shape(self, y_pred):
        return shape_of(y_pred["logits"])[:1]

    def call(self, y_true, y_pred):
        check_objects(type(self).__name__, y_true, y_pred)
        labels = ops.cast(y_true["labels"], "int32")
        boxes = ops.cast(y_true["boxes"], "float32")
        loss = self._compute_layer(labels, boxes, y_pred["logits"], y_pred["boxes"])
        if "auxiliary_logits" in y_pred:
            outputs = y_pred["auxiliary_logits"], y_pred["auxiliary_boxes"]
            for i in range(outputs[0].shape[1]):
                loss = loss + self._compute_layer(labels, boxes, *(x[:, i] for x in outputs))
        if "one_to_many_logits" in y_pred:
            count = self.one_to_many
            each = shapes.tile(labels, (1, count)), shapes.tile(boxes, (1, count, 1))
            outputs = y_pred["one_to_many_logits"], y_pred["one_to_many_boxes"]
            loss = loss + self._compute_layer(*each, *outputs)
        return loss

    def _compute_layer(self, labels, boxes, logits, predicted):
        """Match queries with objects, and compute the loss (B,) of the predictions of one layer.

        `labels` (B, M) and `boxes` (B, M, 4) are the true classes and boxes of objects, `logits`
        (B, Q, C) and `predicted` (B, Q, 4) the predicted ones.
        """
        logits, predicted = ops.cast(logits, "float32"), ops.cast(predicted, "float32")
        chosen = match_objects(self.compute_costs(labels, boxes, logits, predicted), labels)
        matched = ops.greater_equal(chosen, 0)  # (B, M)
        images = sum_over_replicas(ops.cast(ops.shape(labels)[0], "float32"))
        objects = sum_over_replicas(ops.sum(ops.cast(matched, "float32")))
        share = images / ops.maximum(objects, 1.0)
        at = ops.expand_dims(ops.maximum(chosen, 0), -1)
        mine = ops.take_along_axis(predicted, ops.broadcast_to(at, ops.shape(boxes)), axis=1)
        l1 = ops.sum(ops.abs(mine - boxes), axis=-1)
        iou, giou = compute_overlaps(find_corners(mine), find_corners(boxes))
        box_losses = self.l1_weight * l1 + self.giou_weight * (1.0 - giou)
        box_losses = share * ops.sum(ops.where(matched, box_losses, 0.0), axis=1)
        pairs = ops.one_hot(ops.where(matched, chosen, -1), ops.shape(logits)[1])  # (B, M, Q)
        class_losses = self._compute_classification(labels, logits, pairs, iou, share)
        return box_losses + self._class_weight * class_losses

    def _compute_classification(self, labels, logits, pairs, iou, share):
        """Compute the classification loss (B,) of logits (B, Q, C).

        Args:
            labels: int32 (B, M), the class of each object, -1 for padding.
            logits: float (B, Q, C).
            pairs: float (B, M, Q), 1 where an object is matched with a query, else 0.
            iou: float (B, M), the overlap of each object and the box of its query, for
                `"varifocal"`.
            share: scalar, the number of images divided by the number of objects in the whole batch.
        """
        classes = logits.shape[2]
        kinds = ops.one_hot(labels, classes)  # (B, M, C), zeros for padding
        if self.classification == "varifocal":
            kinds = ops.stop_gradient(ops.expand_dims(iou, -1)) * kinds
        targets = ops.einsum("bmq,bmc->bqc", pairs, kinds)
        if self.classification == "varifocal":
            wrong = NEGATIVE * ops.stop_gradient(ops.sigmoid(logits)) ** FOCUS
            weights = ops.where(ops.greater(targets, 0.0), targets, wrong)
            losses = ops.softplus(logits) - targets * logits
            return share * ops.sum(weights * losses, axis=(1, 2))
        if self.classification == "focal":
            losses = keras.losses.binary_focal_crossentropy(
                targets,
                logits,
                apply_class_balancing=True,
                alpha=BALANCE,
                gamma=FOCUS,
                from_logits=True,
            )  # the mean over classes
            return share * classes * ops.sum(losses, axis=1)
        taken = ops.sum(targets, axis=-1)  # (B, Q), 1 where there is an object
        nothing = ops.cast(ops.equal(ops.arange(classes), classes - 1), "float32")
        targets = targets + ops.expand_dims(1.0 - taken, -1) * nothing
        losses = -ops.sum(targets * ops.log_softmax(logits, axis=-1), axis=-1)
        weights = taken + self.no_object_weight * (1.0 - taken)
        images = sum_over_replicas(ops.cast(ops.shape(labels)[0], "float32"))
        return images * ops.sum(weights * losses, axis=1) / sum_over_replicas(ops.sum(weights))

    def compute_costs(self, labels, boxes, logits, predicted):
        """Compute the cost of matching each of Q queries with each of M objects, float (B, Q, M).

        `labels` (B, M) and `boxes` (B, M, 4) are the true classes and boxes of objects, `logits`
        (B, Q, C), for C classes, and `predicted` (B, Q, 4) are the predictions.
        """
        if self.classification != "cross_entropy":
            shares = ops.sigmoid(logits)
            right = BALANCE * (1.0 - shares) ** FOCUS * ops.softplus(-logits)
            wrong = (1.0 - BALANCE) * shares**FOCUS * ops.softplus(logits)
            class_losses = right - wrong
        else:
            class_losses = -ops.softmax(logits, axis=-1)
        kinds = ops.one_hot(labels, logits.shape[2])
        class_losses = ops.einsum("bqc,bmc->bqm", class_losses, kinds)
        theirs, mine = ops.expand_dims(boxes, 1), ops.expand_dims(predicted, 2)
        l1 = ops.sum(ops.abs(mine - theirs), axis=-1)
        _, giou = compute_overlaps(find_corners(mine), find_corners(theirs))
        return self._class_weight * class_losses + self.l1_weight * l1 - self.giou_weight * giou


def match_objects(costs, labels):
    """Match each object with a different query, so that the sum of costs is minimal.

    Args:
        costs: float (B, Q, M), the cost of matching each of Q queries with each of M objects.
        labels: int (B, M). Objects with a negative label are padding.

    Returns:
        int32 (B, M), the index of the query of each object, without a gradient. It is -1 for
        padding, and for unmatched objects if there are more objects than queries.

    ```python
    import numpy as np
    import keras_attention as ka

    costs = np.array([[[1.0, 2.0], [0.0, 5.0], [9.0, 9.0]]])  # three queries, two objects
    assert np.array(ka.training.match_objects(costs, np.array([[0, 0]]))).tolist() == [[1, 0]]
    ```
    """
    costs = ops.stop_gradient(ops.cast(costs, "float32"))
    labels = ops.cast(labels, "int32")
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        chosen = tf.numpy_function(assign, [costs, labels], "int32", stateful=False)
        return tf.ensure_shape(chosen, labels.shape)
    if backend == "jax":
        import jax

        return jax.pure_callback(assign, jax.ShapeDtypeStruct(labels.shape, "int32"), costs, labels)
    chosen = assign(ops.convert_to_numpy(costs), ops.convert_to_numpy(labels))
    return ops.convert_to_tensor(chosen, dtype="int32")


def assign(costs, labels):
    """Return the index of the query of each object, int32 (B, M), computed with SciPy.

    `costs` (B, Q, M) and `labels` (B, M) are NumPy arrays, explained in `match_objects`.
    """
    scipy = import_extra("scipy.optimize", "ka.training.HungarianLoss", "SciPy", "detection")
    costs, labels = np.asarray(costs), np.asarray(labels)
    chosen = np.full(labels.shape, -1, "int32")
    costs = np.nan_to_num(costs, nan=WORST, posinf=WORST, neginf=-WORST)
    for row, cost, kinds in zip(chosen, costs, labels, strict=True):
        objects = np.flatnonzero(kinds >= 0)
        queries, columns = scipy.linear_sum_assignment(cost[:, objects])
        row[objects[columns]] = queries
    return chosen
