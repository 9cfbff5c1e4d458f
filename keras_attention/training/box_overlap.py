"""Overlap of boxes: intersection over union, plain and generalized."""

from keras import ops


def find_corners(boxes):
    """Convert boxes (..., 4) from (cx, cy, w, h) to (x0, y0, x1, y1)."""
    middles, sizes = ops.split(boxes, 2, axis=-1)
    return ops.concatenate([middles - sizes / 2, middles + sizes / 2], axis=-1)


def compute_overlaps(first, second):
    """Compute the intersection over union of boxes, and its generalized form.

    The generalized form subtracts the share of the smallest box around both that neither covers
    (Rezatofighi et al., 2019). It is at least -1, and has a gradient for boxes that do not touch.
    `keras.utils.bounding_boxes` has the plain and the complete form.

    Args:
        first, second: float (..., 4), corners (x0, y0, x1, y1), of shapes that broadcast: (B, Q, 1,
            4) and (B, 1, M, 4) for all pairs.

    Returns:
        Two tensors (...). Two boxes without area give 0.

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
    """Compute the areas (...) of boxes (..., 4)."""
    return _multiply_sides(ops.maximum(corners[..., 2:] - corners[..., :2], 0.0))


def _multiply_sides(sides):
    return sides[..., 0] * sides[..., 1]
