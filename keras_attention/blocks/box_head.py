"""`BoxHead`: predicts a box for each vector of a detector."""

import keras
import numpy as np
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core.checks import check_rows_and_columns, check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.core.weight_axes import name_axes

START = -2.0  # the initial logit of width and height: about an eighth of the image
MARGIN = 1e-3  # the minimum initial distance of a learned point from the edge of the image


@keras.saving.register_keras_serializable(package="keras_attention")
class BoxHead(OwnArguments, ProjectionOwner):
    """Predicts a box in an image from each vector of a decoder (Carion et al., 2020, section 3.2).

    The head is a network of three dense layers. With `points`, each vector has a reference point in
    the image. The predicted center is an offset from this point, added before the sigmoid (Zhu et
    al., 2021, *Deformable DETR*, appendix A.3). So the first boxes in training lie around the
    points.

    Args:
        hidden_dim: int, the width of the two inner layers.
        points: a tuple (rows, columns) for a grid whose cell centers are the points, row by row. An
            int for that many learned points. None for no points.

    Call arguments:
        inputs: (B, Q, D), one vector for each query.

    Returns boxes (B, Q, 4): center, width and height (cx, cy, w, h), as fractions of the image's
    width and height.

    ```python
    import numpy as np
    import keras_attention as ka

    head = ka.blocks.BoxHead(16, points=(2, 2))
    boxes = np.array(head(np.zeros((1, 4, 8))))
    assert np.allclose(boxes[0, :, :2], [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]])
    ```
    """

    own_arguments = ("hidden_dim", "points")
    weight_axes = {"points": ("rows", "rows", "inner")}

    def __init__(self, hidden_dim, points=None, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.hidden_dim = check_whole_number("BoxHead", "hidden_dim", hidden_dim)
        if isinstance(points, tuple | list):
            points = check_rows_and_columns("BoxHead", "points", points)
        elif points is not None:
            points = check_whole_number("BoxHead", "points", points)
        self.points = points
        self._inner = [
            keras.layers.Dense(hidden_dim, "relu", **self._projection_arguments(f"hidden_{i}"))
            for i in range(2)
        ]
        self._last = keras.layers.Dense(
            4, kernel_initializer="zeros", **self._projection_arguments("offsets")
        )
        name_axes(self._last, kernel=("embed", "inner"))

    def build(self, input_shape):
        count = int(np.prod(self.points)) if isinstance(self.points, tuple) else self.points
        if count not in (None, input_shape[1]):
            raise ValueError(
                f"{self.name} has {count} points, points={self.points}, but was called on "
                f"{input_shape[1]} vectors. Give as many points as vectors."
            )
        for layer in self._inner:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], self.hidden_dim)
        self._last.build(input_shape)
        if isinstance(self.points, int):
            self.learned_points = self.add_weight(
                shape=(1, self.points, 2), initializer=_sample_points, name="points"
            )

    def call(self, inputs):
        x = ops.cast(inputs, self.compute_dtype)
        for layer in self._inner:
            x = layer(x)
        centers, sizes = ops.split(self._last(x), 2, axis=-1)
        if self.points is not None:
            is_grid = isinstance(self.points, tuple)
            points = _grid_points(*self.points) if is_grid else self.learned_points
            centers = ops.add(centers, ops.cast(points, centers.dtype))
        return ops.sigmoid(ops.concatenate([centers, ops.add(sizes, START)], axis=-1))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 4)


def _grid_points(rows, columns):
    """Return an array (1, rows · columns, 2), whose sigmoid is the center (x, y) of each grid cell.

    x and y are fractions of the image's width and height.
    """
    y, x = (np.mgrid[:rows, :columns] + 0.5) / np.reshape([rows, columns], (2, 1, 1))
    points = np.stack([x, y], axis=-1).reshape(1, -1, 2)
    return np.log(points / (1.0 - points)).astype("float32")


def _sample_points(shape, dtype=None):
    """Return a tensor of shape (1, Q, 2), whose sigmoid is a random point (x, y) for each query.

    x and y are fractions of the image's width and height.
    """
    points = keras.random.uniform(shape, MARGIN, 1.0 - MARGIN, dtype=dtype)
    return ops.log(points / (1.0 - points))
