"""`BoxHead`: boxes of vectors, each beside a point that belongs to its vector."""

import keras
import numpy as np
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core.checks import check_rows_and_columns, check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.core.weight_axes import name_axes

START = -2.0  # of width and height before the sigmoid: an eighth of the image
NARROWEST = 1e-3  # how near to the edge a learned point may begin


@keras.saving.register_keras_serializable(package="keras_attention")
class BoxHead(OwnArguments, ProjectionOwner):
    """A network of three layers that gives the box of each vector (Carion et al., 2020, 3.2).

    With `points`, what it gives is added to the vector's own point, before the sigmoid (Zhu et al.,
    2021, *Deformable DETR*, appendix A.3), so that it begins with a box around that.

    Args:
        hidden_dim: int, of the two inner layers.
        points: (rows, columns) for the middles of the cells of a grid, row by row; an int for so
            many learned points; None for none.

    Call arguments:
        inputs: (B, Q, D), a vector for each query.

    Returns (B, Q, 4): middle, width and height of each box as shares of the image's width
    and height, (cx, cy, w, h).

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
        if self._count not in (None, input_shape[1]):
            raise ValueError(
                f"{self.name} has {self._count} points, points={self.points}, and was called on "
                f"{input_shape[1]} vectors: expected as many."
            )
        for layer in self._inner:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], self.hidden_dim)
        self._last.build(input_shape)
        if isinstance(self.points, int):
            self.learned_points = self.add_weight(
                shape=(1, self.points, 2), initializer=_draw_points, name="points"
            )

    @property
    def _count(self):
        """How many vectors there must be; None for any number."""
        return int(np.prod(self.points)) if isinstance(self.points, tuple) else self.points

    def call(self, inputs):
        x = ops.cast(inputs, self.compute_dtype)
        for layer in self._inner:
            x = layer(x)
        offsets = self._last(x)
        middles, sizes = ops.split(offsets, 2, axis=-1)
        if isinstance(self.points, tuple):
            middles = ops.add(middles, ops.cast(_grid_points(*self.points), middles.dtype))
        elif self.points is not None:
            middles = ops.add(middles, ops.cast(self.learned_points, middles.dtype))
        return ops.sigmoid(ops.concatenate([middles, ops.add(sizes, START)], axis=-1))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 4)


def _grid_points(rows, columns):
    """The middles (x, y) of the cells of a grid, (1, rows · columns, 2), before the sigmoid."""
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns,
                       indexing="ij")  # fmt: skip
    points = np.stack([x, y], axis=-1).reshape(1, -1, 2)
    return np.log(points / (1.0 - points)).astype("float32")


def _draw_points(shape, dtype=None):
    """Learned points all over the image, before the sigmoid."""
    points = keras.random.uniform(shape, NARROWEST, 1.0 - NARROWEST, dtype=dtype)
    return ops.log(points / (1.0 - points))
