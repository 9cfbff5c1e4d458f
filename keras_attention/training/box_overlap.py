"""The overlap of boxes: intersection over union (IoU) and generalized IoU."""

from keras import ops


def find_corners(boxes):
    """Return the corners (x0, y0, x1, y1) of boxes (..., 4) given as (center x, center y, w, h)."""
    middles, sizes = ops.split(boxes, 2, axis=-1)
    return ops.concatenate([middles - sizes / 2, middles + sizes / 2], axis=-1)


def compute_overlaps(first, second):
    """Compute the intersection over union (IoU) and the generalized IoU of boxes.

    Generalized IoU is IoU minus the uncovered fraction of the smallest box that encloses both
    (Rezatofighi et al., 2019). It is at least -1, and it has a gradient even if the boxes do not
    touch. `keras.utils.bounding_boxes` does not compute generalized IoU.

    Args:
        first, second: float (..., 4), corners (x0, y0, x1, y1). The shapes must broadcast, such as
            (B, Q, 1, 4) and (B, 1, M, 4) to compare Q boxes with each of M boxes.

    Returns:
        (iou, giou), two float32 tensors (...). Both are 0 for two boxes without area.

    ```python
    import numpy as np
    import keras_attention as ka

    iou, giou = ka.training.compute_overlaps(
        np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 3.0, 2.0]])
    )
    assert abs(float(iou[0]) - 1 / 3) < 1e-6 and abs(float(giou[0]) - 1 / 3) < 1e-6
    ```
    """
    first, second = ops.cast(first, "float32"), ops.cast(second, "float32")
    shared = ops.minimum(first[..., 2:], second[..., 2:]) - ops.maximum(
        first[..., :2], second[..., :2]
    )
    around = ops.maximum(first[..., 2:], second[..., 2:]) - ops.minimum(
        first[..., :2], second[..., :2]
    )
    intersection = _multiply_sides(ops.maximum(shared, 0.0))
    union = _measure(first) + _measure(second) - intersection
    hull = _multiply_sides(ops.maximum(around, 0.0))
    iou = ops.divide_no_nan(intersection, union)
    return iou, iou - ops.divide_no_nan(hull - union, hull)


def _measure(corners):
    """Return the areas (...) of boxes (..., 4), given by their corners."""
    return _multiply_sides(ops.maximum(corners[..., 2:] - corners[..., :2], 0.0))


def _multiply_sides(sides):
    return sides[..., 0] * sides[..., 1]
