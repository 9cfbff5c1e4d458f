"""Swin's relative biases for distances in rows and columns, from a table or a small network."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.positions.base import WeightedBias
from keras_attention.positions.indices import count_queries_and_keys, expand_positions
from keras_attention.positions.patch_grid import (
    check_grid,
    check_grid_length,
    compute_coordinates,
    interpolate,
)
from keras_attention.positions.relative_scores import check_heads

PREFIX_ROWS = 3  # for a query in the prefix, a key in the prefix, and both, as in BEiT


class GridBias(WeightedBias):
    """Base class of biases per head that depend on the distance in rows and in columns.

    A subclass computes the biases in `bias_table` (num_distances, N). The table has a row for each
    combination of a distance i - j in rows and a distance in columns, from -reach to reach. The
    distance in columns changes fastest. If there are tokens before the grid (a prefix),
    `PREFIX_ROWS` more rows follow.
    """

    own_arguments = ("grid", "prefix")

    def __init__(self, grid, prefix=0, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.grid, self.prefix = grid, prefix
        check_grid(self)

    def check_length(self, length, exact=True):
        check_grid_length(self, length, exact)

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        if query_positions is None:
            check_grid_length(self, query.shape[1], exact=False)
        if key is not None and key_positions is None:
            check_grid_length(self, key.shape[1], exact=False)
        i, j = map(
            expand_positions, count_queries_and_keys(query_positions, key_positions, query, key)
        )
        index = self._index(ops.expand_dims(i, axis=2), ops.expand_dims(j, axis=1))
        return ops.transpose(ops.take(self.bias_table(), index, axis=0), (0, 3, 1, 2))

    def bias_table(self):
        """Compute the bias of each distance and head: float32 (num_distances, N).

        If there is a prefix, the table has `PREFIX_ROWS` more rows at the end.
        """
        raise NotImplementedError(f"{type(self).__name__}.bias_table")

    @property
    def reach(self):
        """Return (rows, columns), the largest distances that have their own bias."""
        return tuple(side - 1 for side in self.grid)

    @property
    def num_distances(self):
        """Return the number of combinations of row and column distances with their own bias."""
        rows, columns = self.reach
        return (2 * rows + 1) * (2 * columns + 1)

    def _index(self, i, j):
        """Return the table row of each pair of a query and a key: int (1 or B, T, S).

        `i` (1 or B, T, 1) and `j` (1 or B, 1, S) are their positions.
        """
        steps = [
            ops.clip(of_i - of_j, -reach, reach) + reach
            for of_i, of_j, reach in zip(
                compute_coordinates(i, self.grid, self.prefix),
                compute_coordinates(j, self.grid, self.prefix),
                self.reach,
                strict=True,
            )
        ]
        index = steps[0] * (2 * self.reach[1] + 1) + steps[1]
        if not self.prefix:
            return index
        from_front, to_front = (ops.cast(p < self.prefix, "int32") for p in (i, j))
        in_front = self.num_distances + to_front * (1 + from_front)
        return ops.where(ops.logical_or(i < self.prefix, j < self.prefix), in_front, index)

    def num_heads(self, shape):
        """Return N, the number of heads, from the shape (B, T, N, H) of queries."""
        check_heads(self, shape)
        return shape[2]


@keras.saving.register_keras_serializable(package="keras_attention")
class SwinBias(GridBias):
    """Adds a learned bias per head for the distance in rows and in columns to the scores.

    Pass it as `position=` of an attention layer. The layer calls it with its query heads
    (B, T, N, H), and adds the result, (1 or B, N, T, S), to its scores.

    `bias[n, i, j] = table[d(i, j), n]` for head n, query i and key j (Liu et al., 2021, Swin,
    equation 4). The table has one row for each combination d of a distance in rows and a distance
    in columns. By default these are (2 · rows - 1) · (2 · columns - 1), in the order of Swin's
    published weights. If there is a prefix, the table has three more rows, as in BEiT, for pairs
    that include a token of the prefix.

    Args:
        grid: (rows, columns) of the tokens, which are in row-by-row order. If each window is a
            sequence, this is the size of a window. If a mask such as `Window2D` defines the
            windows, the grid is the size of the image.
        prefix: int, the number of tokens before the grid.
        max_distance: (rows, columns), ints. Larger distances count as these. If a mask defines
            windows of r rows and c columns, (r - 1, c - 1) is enough, and makes the table as small
            as the table of a window. None means the largest distance in the grid.
        initializer: initializer of the table. None uses a normal distribution with standard
            deviation 0.02.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.SwinBias(grid=(2, 3))
    bias = position(np.zeros((1, 6, 4, 8), "float32"))
    assert bias.shape == (1, 4, 6, 6) and position.table.shape == (3 * 5, 4)
    assert np.array_equal(bias[0, :, 4, 0], bias[0, :, 5, 1])  # both one row and one column apart
    ```
    """

    weight_axes = {"table": ("rows", "heads")}
    own_arguments = ("max_distance",)

    def __init__(self, grid, prefix=0, max_distance=None, initializer=None, **kwargs):
        super().__init__(grid, prefix, initializer, **kwargs)
        self.max_distance = max_distance
        if max_distance is not None:
            self.max_distance = checks.check_rows_and_columns(
                type(self).__name__, "max_distance", max_distance, least=0
            )

    @property
    def reach(self):
        return super().reach if self.max_distance is None else self.max_distance

    def build(self, shape):
        rows = self.num_distances + (PREFIX_ROWS if self.prefix else 0)
        self.table = self.add_table((rows, self.num_heads(shape)))

    def bias_table(self):
        return ops.convert_to_tensor(self.table)

    def interpolate(self, new_grid, method="bicubic"):
        """Return a copy of this layer for `new_grid`, with a resized table.

        Args:
            new_grid: (rows, columns) of the new image or window.
            method: interpolation method, `"bicubic"`, `"bilinear"` or `"nearest"`.

        Returns:
            A new layer, built if this one is. To resize a trained model, build the model again for
            the new grid and set that layer's weights to the weights of the result.
        """
        new_grid = checks.check_rows_and_columns("interpolate", "new_grid", new_grid)
        other = self.from_config({**self.get_config(), "grid": new_grid})
        if self.built:
            other.build((None, None, self.table.shape[1], 1))
            table, last = ops.split(ops.convert_to_tensor(self.table), [self.num_distances])
            old, new = (tuple(2 * side + 1 for side in part.reach) for part in (self, other))
            table = interpolate(table, old, new, method=method)
            other.table.assign(ops.concatenate([table, last], axis=0))
        return other


@keras.saving.register_keras_serializable(package="keras_attention")
class ContinuousBias(GridBias):
    """Adds a bias that a small network computes from the distance (Liu et al., 2022, Swin V2).

    Pass it as `position=` of an attention layer. The layer calls it with its query heads
    (B, T, N, H), and adds the result, (1 or B, N, T, S), to its scores.

    Distances i - j in rows and in columns are divided by the largest distance in the grid. The
    result d is rescaled to sign(d) · log2(1 + |8 d|) / log2(8) (equation 4). From both distances, a
    network with one hidden ReLU layer computes a value x for each head. The bias is
    16 · sigmoid(x), as in the published code. The network runs once per distance, not once per pair
    of tokens. Its weights do not depend on the grid. If you use trained weights with another grid,
    set `pretrained_grid` to the grid of the training.

    Args:
        grid: (rows, columns) of the tokens, which are in row-by-row order.
        prefix: int, the number of tokens before the grid. Pairs that include them have bias 0.
        hidden_dim: int, the width of the hidden layer.
        pretrained_grid: (rows, columns). Distances are divided by the largest distances in this
            grid. None means `grid`.
        initializer: initializer of the kernels (2, hidden_dim) and (hidden_dim, N). None uses a
            normal distribution with standard deviation 0.02. The hidden layer's bias starts at
            zero.

    ```python
    import numpy as np
    import keras_attention as ka

    small = ka.positions.ContinuousBias(grid=(8, 8))
    assert small(np.zeros((1, 64, 4, 8), "float32")).shape == (1, 4, 64, 64)
    large = ka.positions.ContinuousBias(grid=(16, 16), pretrained_grid=(8, 8))
    large.build((None, None, 4, 8))
    large.set_weights(small.get_weights())
    ```
    """

    weight_axes = {"hidden_kernel": ("inner", "inner"), "kernel": ("inner", "heads")}
    own_arguments = ("hidden_dim", "pretrained_grid")

    def __init__(
        self, grid, prefix=0, hidden_dim=512, pretrained_grid=None, initializer=None, **kwargs
    ):
        super().__init__(grid, prefix, initializer, **kwargs)
        self.hidden_dim, self.pretrained_grid = hidden_dim, pretrained_grid
        checks.check_whole_numbers(self, "hidden_dim")
        if pretrained_grid is not None:
            self.pretrained_grid = checks.check_rows_and_columns(
                type(self).__name__, "pretrained_grid", pretrained_grid
            )

    def build(self, shape):
        heads = self.num_heads(shape)
        self.hidden_kernel = self.add_table((2, self.hidden_dim), "hidden_kernel")
        self.hidden_bias = self.add_table((self.hidden_dim,), "hidden_bias", "zeros")
        self.kernel = self.add_table((self.hidden_dim, heads), "kernel")

    def bias_table(self):
        distances = ops.convert_to_tensor(self.distances(), "float32")
        hidden = ops.relu(ops.matmul(distances, self.hidden_kernel) + self.hidden_bias)
        table = 16 * ops.sigmoid(ops.matmul(hidden, self.kernel))
        if self.prefix:
            table = ops.pad(table, ((0, PREFIX_ROWS), (0, 0)))
        return table

    def distances(self):
        """Return the network's inputs, the rescaled distances: NumPy (num_distances, 2)."""
        steps = [np.arange(-reach, reach + 1) for reach in self.reach]
        steps = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 2)
        largest = np.maximum(np.array(self.pretrained_grid or self.grid) - 1, 1)
        return np.sign(steps) * np.log2(1 + np.abs(8 * steps / largest)) / np.log2(8)
