"""Learned position embeddings, for text and for images."""

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.positions.base import WeightedEmbedding
from keras_attention.positions.indices import (
    check_inside,
    count,
    expand_positions,
    resolve_positions,
)
from keras_attention.positions.patch_grid import (
    check_grid,
    check_grid_length,
    check_grid_tokens,
    compute_coordinates,
    interpolate,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class Learned(WeightedEmbedding):
    """Adds a learned vector for each position (Gehring et al., 2017, BERT and ViT).

    Pass it as `position=` of `ka.blocks.TokenEmbedding`, `PatchEmbedding` or a model.

    A token x at position p becomes `x + table[p]`. An input longer than `max_length` raises an
    error, at run time if its length is dynamic. `extend` returns a longer table, and `interpolate`
    resizes the table for another image size.

    Args:
        max_length: int, the number of positions.
        initializer: initializer of the table (max_length, D). None uses a normal distribution with
            standard deviation 0.02.

    Call arguments:
        x: (B, T, D), with T at most max_length.
        positions: int (T,) or (B, T), from 0 to max_length - 1. None means 0, 1, 2, ... Other
            values are an error: in a graph, TensorFlow on the CPU and LiteRT raise it at run time,
            but GPUs and JAX do not check.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Learned(max_length=4)
    x = np.zeros((1, 3, 8), "float32")
    first = position(x)
    assert np.array_equal(first[0], position.get_weights()[0][:3])

    longer = position.extend(6)  # the same vectors, and two new ones
    assert np.array_equal(longer(x), first)
    ```
    """

    weight_axes = {"table": ("rows", "embed")}
    own_arguments = ("max_length",)

    def __init__(self, max_length, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.max_length = max_length
        checks.check_whole_numbers(self, "max_length")

    def build(self, shape):
        if len(shape) != 3 or shape[2] is None:
            raise ValueError(
                "Learned adds to tokens of shape (batch, length, width) with a known width, but "
                f"received {tuple(shape)}."
            )
        self.table = self.add_table((self.max_length, shape[2]))

    def check_length(self, length, exact=True):
        if length is not None and length > self.max_length:
            raise ValueError(
                f"A sequence of length {length} is longer than {self._shown}. Shorten it, or make "
                "the table longer with extend()."
            )

    @property
    def _shown(self):
        return f"{type(self).__name__}(max_length={self.max_length})"

    def embed(self, x, positions=None):
        self.check_built()
        scope.limit_length(self.max_length, self._shown)
        positions = resolve_positions(positions, x)
        if positions is None:
            self.check_length(x.shape[1])
            table = ops.convert_to_tensor(self.table)
            rows = ops.slice(table, (0, 0), (ops.shape(x)[1], x.shape[2]))
        else:
            fix = " Make the table longer with extend()."
            check_inside(positions, self.max_length, self._shown, fix)
            rows = ops.take(self.table, count(positions, x), axis=0)
        if len(rows.shape) == 2:
            rows = ops.expand_dims(rows, axis=0)
        return ops.cast(ops.cast(x, "float32") + rows, x.dtype)

    def extend(self, new_length, initializer=None):
        """Return a copy of this layer whose table has `new_length` vectors.

        Args:
            new_length: int, at least `max_length`.
            initializer: initializer of the new vectors. None uses the initializer of this layer.

        Returns:
            A new `Learned`, built if this one is. To extend a trained model, build the model again
            with `Learned(new_length)` and set that layer's weights to the weights of the result.
        """
        new_length = checks.check_whole_number("extend", "new_length", new_length, self.max_length)
        config = {**self.get_config(), "max_length": new_length}
        if initializer is not None:
            initializer = keras.initializers.get(initializer)
            config["initializer"] = keras.initializers.serialize(initializer)
        longer = self.from_config(config)
        if self.built:
            longer.build((None, None, self.table.shape[1]))
            old, new = ops.convert_to_tensor(self.table), ops.convert_to_tensor(longer.table)
            longer.table.assign(ops.concatenate([old, new[self.max_length :]], axis=0))
        return longer

    def interpolate(self, grid, new_grid, prefix=0, method="bicubic"):
        """Return a copy of this layer for another image size, with a resized table.

        Args:
            grid: (rows, columns) of this layer's image in patches, or (1, n) for text.
            new_grid: (rows, columns) of the new image in patches.
            prefix: int, the number of first vectors that are not resized, such as the vectors of
                the class token and registers.
            method: interpolation method, `"bicubic"`, `"bilinear"` or `"nearest"`.

        Returns:
            A new, built `Learned`. To resize a trained model, build the model again for the new
            size and set that layer's weights to the weights of the result.
        """
        self.check_built()
        table = interpolate(self.table, grid, new_grid, prefix, method)
        other = self.from_config({**self.get_config(), "max_length": len(table)})
        other.build((None, None, table.shape[1]))
        other.table.assign(table)
        return other


@keras.saving.register_keras_serializable(package="keras_attention")
class Learned2D(WeightedEmbedding):
    """Adds learned vectors of the column to half of the features, and of the row to the rest.

    Pass it as `position=` of `ka.blocks.TokenEmbedding`, `PatchEmbedding` or a model.

    DETR (Carion et al., 2020) and appendix D.4 of Dosovitskiy et al. (2021) use this encoding. This
    layer learns rows + columns vectors, where `Learned` learns rows · columns.

    Args:
        grid: (rows, columns) of the image in patches. Tokens are the patches, row by row.
        prefix: int, the number of tokens before the grid. Each of them has its own vector.
        initializer: initializer of the tables (columns, D/2), (rows, D/2) and (prefix, D). None
            uses a normal distribution with standard deviation 0.02.

    Call arguments:
        x: (B, T, D), with T at most prefix + rows · columns, and D even.
        positions: int (T,) or (B, T). None means 0, 1, 2, ...

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Learned2D(grid=(2, 3))
    x = position(np.zeros((1, 6, 4), "float32"))[0]  # tokens 1 and 4 are in column 1
    assert np.array_equal(x[1, :2], x[4, :2]) and not np.array_equal(x[1, 2:], x[4, 2:])
    assert position.interpolate((4, 6)).row_table.shape == (4, 2)
    ```
    """

    weight_axes = {
        "column_table": ("rows", "embed"),
        "row_table": ("rows", "embed"),
        "prefix_table": ("rows", "embed"),
    }
    own_arguments = ("grid", "prefix")

    def __init__(self, grid, prefix=0, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.grid, self.prefix = grid, prefix
        check_grid(self)

    def build(self, shape):
        if len(shape) != 3 or shape[2] is None or shape[2] % 2:
            raise ValueError(
                "Learned2D adds to tokens of shape (batch, length, width) with an even width, but "
                f"received {tuple(shape)}."
            )
        width = shape[2]
        rows, columns = self.grid
        self.column_table = self.add_table((columns, width // 2), "column_table")
        self.row_table = self.add_table((rows, width // 2), "row_table")
        if self.prefix:
            self.prefix_table = self.add_table((self.prefix, width), "prefix_table")

    def check_length(self, length, exact=True):
        check_grid_length(self, length, exact)

    def embed(self, x, positions=None):
        self.check_built()
        check_grid_tokens(self, x.shape[1], positions)
        vectors = self._vectors(expand_positions(count(positions, x)))
        return ops.cast(ops.cast(x, "float32") + vectors, x.dtype)

    def _vectors(self, positions):
        """Return the learned vectors of `positions`: float32 (1 or B, T, D)."""
        rows, columns = compute_coordinates(positions, self.grid, self.prefix)
        vectors = ops.concatenate(
            [ops.take(self.column_table, columns, axis=0), ops.take(self.row_table, rows, axis=0)],
            axis=2,
        )
        if not self.prefix:
            return vectors
        in_front = ops.take(self.prefix_table, ops.minimum(positions, self.prefix - 1), axis=0)
        is_in_front = ops.cast(ops.expand_dims(positions < self.prefix, axis=2), "float32")
        return in_front * is_in_front + vectors * (1 - is_in_front)

    def interpolate(self, new_grid, method="bicubic"):
        """Return a copy of this layer for an image of `new_grid`, with resized tables.

        Args:
            new_grid: (rows, columns) of the new image in patches.
            method: interpolation method, `"bicubic"`, `"bilinear"` or `"nearest"`.

        Returns:
            A new `Learned2D`. To resize a trained model, build the model again for the new grid and
            set that layer's weights to the weights of the result.
        """
        new_grid = checks.check_rows_and_columns("interpolate", "new_grid", new_grid)
        other = self.from_config({**self.get_config(), "grid": new_grid})
        if self.built:
            other.build((None, None, 2 * self.row_table.shape[1]))
            for name, old, new in zip(("row", "column"), self.grid, new_grid, strict=True):
                table = getattr(self, f"{name}_table")
                getattr(other, f"{name}_table").assign(
                    interpolate(table, (1, old), (1, new), method=method)
                )
            if self.prefix:
                other.prefix_table.assign(self.prefix_table)
        return other
