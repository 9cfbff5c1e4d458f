"""Swin's relative biases for distances in rows and columns, from a table or a network."""

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

PREFIX_ROWS = 3  # prefix to grid, grid to prefix, prefix to prefix, as in BEiT


class GridBias(WeightedBias):
    """Adds to each head's scores a number for the distance in rows and in columns.

    Subclasses compute the numbers in `bias_table` (distances, N): one for each distance in rows, i
    - j from -reach to reach, times each in columns, then, with a prefix, `PREFIX_ROWS` more.
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
        """Compute the bias of each distance and head, float32 (distances, N)."""
        raise NotImplementedError(f"{type(self).__name__}.bias_table")

    @property
    def reach(self):
        """The largest distances with their own bias, in rows and in columns."""
        return tuple(side - 1 for side in self.grid)

    @property
    def num_distances(self):
        """The number of distances in rows and columns that have their own bias."""
        rows, columns = self.reach
        return (2 * rows + 1) * (2 * columns + 1)

    def _index(self, i, j):
        """Return the row of the table for queries i (1 or B, T, 1) and keys j (1 or B, 1, S)."""
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
        """Return the N of queries of `shape` (B, T, N, H)."""
        check_heads(self, shape)
        return shape[2]


@keras.saving.register_keras_serializable(package="keras_attention")
class SwinBias(GridBias):
    """Adds to each head's scores a learned number for the distance in rows and in columns.

    Liu et al. (2021, Swin, equation 4): a table of (2 rows - 1)(2 columns - 1) numbers for each
    head, in the order of the published weights (i - j, row by row). Pairs with a token of the
    prefix have three more numbers: prefix to grid, grid to prefix, prefix to prefix (BEiT).

    Args:
        grid: (rows, columns) of the tokens, row by row: those of a window if each window is a
            sequence, those of the image if a mask such as `Window2D` makes the windows.
        prefix: int, the number of tokens before the grid.
        max_distance: (rows, columns): larger distances count as these. With windows made by a mask
            it keeps the table as small as a window. None is the grid's own.
        initializer: of the table. None is a normal distribution with deviation 0.02.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.SwinBias(grid=(2, 3))
    bias = position(np.zeros((1, 6, 4, 8), "float32"))
    assert bias.shape == (1, 4, 6, 6) and position.table.shape == (3 * 5, 4)
    assert np.array_equal(bias[0, :, 4, 0], bias[0, :, 5, 1])  # a row down, a column right
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
        """Return this position for `new_grid`, with a resized table.

        Args:
            new_grid: (rows, columns).
            method: as in `interpolate`.

        Returns:
            A new position, built if this one is. For a trained model, build the model again for the
            new grid and set the weights of its position to these.
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

    The distance i - j in rows and in columns is divided by the grid's largest and spaced
    logarithmically, sign(d) log2(1 + |8 d|) / log2(8) (equation 4). A hidden layer with ReLU makes
    a number x for each head of it, and 16 sigmoid(x) is added, as in the published code. The
    network runs once for each distance, not for each pair. Its weights do not depend on the grid:
    on another grid, set `pretrained_grid` to the one that they were learned on.

    Args:
        grid: (rows, columns) of the tokens, row by row, as in `SwinBias`.
        prefix: int, the number of tokens before the grid. Pairs with them have bias 0.
        hidden_dim: int, the width of the hidden layer.
        pretrained_grid: (rows, columns) whose largest distances divide. None is `grid`.
        initializer: of the kernels (2, hidden_dim) and (hidden_dim, N). None is a normal
            distribution with deviation 0.02. The hidden layer's bias starts at zero.

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
        """Return the network's inputs: NumPy (distances, 2), from -8 to 8 before the logarithm."""
        steps = [np.arange(-reach, reach + 1) for reach in self.reach]
        steps = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 2)
        largest = np.maximum(np.array(self.pretrained_grid or self.grid) - 1, 1)
        return np.sign(steps) * np.log2(1 + np.abs(8 * steps / largest)) / np.log2(8)
