"""Helpers for grids of image patches: coordinates, checks, and `interpolate` for tables."""

import numpy as np
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.positions.indices import check_inside


def check_grid(part, optional=False):
    """Raise a ValueError unless `part.prefix` is an int and `part.grid` a pair of ints.

    `part` is a position encoding for images. NumPy integers become ints. If `optional`, the grid
    may be None.
    """
    checks.check_whole_numbers(part, "prefix", least=0)
    if optional and part.grid is None:
        if part.prefix:
            raise ValueError(
                f"{type(part).__name__}(prefix={part.prefix}): a prefix needs a grid. Give "
                "grid=(rows, columns) too."
            )
        return
    name = type(part).__name__
    object.__setattr__(part, "grid", checks.check_rows_and_columns(name, "grid", part.grid))


def compute_coordinates(positions, grid, prefix):
    """Return the row and the column of each position, as int tensors of the shape of `positions`.

    `grid` is (rows, columns), and `prefix` the number of tokens before the patches. Patches are
    numbered row by row after the prefix. All tokens of the prefix are at (0, 0).
    """
    if prefix:
        positions = ops.maximum(positions - prefix, 0)
    rows = ops.floor_divide(positions, grid[1])
    return rows, positions - rows * grid[1]


def count_grid_tokens(part):
    """Return the number of tokens in the prefix and the grid of a position encoding together.

    `part` is the encoding, with attributes `prefix` (int) and `grid` (rows, columns).
    """
    rows, columns = part.grid
    return part.prefix + rows * columns


def check_grid_length(part, length, exact=True):
    """Raise a ValueError if a sequence has more tokens than the prefix and image grid of `part`.

    If `exact`, and no model is decoding, fewer tokens are an error too. `length` is the number of
    tokens, or None if it is dynamic.
    """
    scope.limit_length(count_grid_tokens(part), f"{type(part).__name__}(grid={part.grid})")
    exact = exact and scope.current(scope.Decoding) is None
    advice = "and move learned weights to it with interpolate(), "
    checks.check_token_count(part, count_grid_tokens(part), length, exact, advice)


def check_grid_tokens(part, length, positions):
    """Raise a ValueError for positions outside the prefix and image grid of an encoding.

    `part` is the encoding, with attributes `prefix` (int) and `grid` (rows, columns). If
    `positions` is None, the `length` of the sequence is checked instead.
    """
    if positions is None:
        check_grid_length(part, length, exact=False)
    else:
        table = f"{type(part).__name__}(grid={part.grid}, prefix={part.prefix})"
        check_inside(positions, count_grid_tokens(part), table)


METHODS = ("bicubic", "bilinear", "nearest")


def interpolate(table, grid, new_grid, prefix=0, method="bicubic"):
    """Resize a table of position embeddings of image patches to another image size.

    The vectors are resized like the pixels of an image (Dosovitskiy et al., 2021, section 3.2),
    with antialiasing. The vectors of the prefix (class token, registers) are copied unchanged.

    Args:
        table: (prefix + rows · columns, D), with the patches in row-by-row order.
        grid: (rows, columns) of `table`.
        new_grid: (rows, columns) of the result. For text, both grids have one row.
        prefix: int, the number of vectors before the grid.
        method: interpolation method, `"bicubic"`, `"bilinear"` or `"nearest"`.

    Returns:
        NumPy (prefix + new rows · new columns, D), in the table's dtype.

    Raises:
        ValueError: `method` is unknown, or the table does not have the size of `grid` and `prefix`.

    ```python
    import numpy as np
    import keras_attention as ka

    table = np.random.rand(1 + 4 * 4, 8)  # a class token and 4 × 4 patches
    larger = ka.positions.interpolate(table, (4, 4), (6, 6), prefix=1)
    assert larger.shape == (1 + 6 * 6, 8) and np.array_equal(larger[0], table[0])
    ```
    """
    grid = checks.check_rows_and_columns("interpolate", "grid", grid)
    new_grid = checks.check_rows_and_columns("interpolate", "new_grid", new_grid)
    if method not in METHODS:
        raise ValueError(
            f"interpolate(method={method!r}): method must be one of "
            f"{', '.join(map(repr, METHODS))}."
        )
    table = ops.convert_to_numpy(table)
    if table.ndim != 2 or len(table) != prefix + grid[0] * grid[1]:
        raise ValueError(
            f"A table of shape {table.shape} does not hold {prefix} vectors and then {grid[0]} · "
            f"{grid[1]}, as prefix={prefix} and grid={grid} say."
        )
    if grid == new_grid:
        return table
    front, patches = table[:prefix], table[prefix:].reshape(1, *grid, -1)
    patches = ops.image.resize(
        patches.astype("float32"), new_grid, method, antialias=True, data_format="channels_last"
    )
    patches = ops.convert_to_numpy(patches).reshape(-1, table.shape[1]).astype(table.dtype)
    return np.concatenate([front, patches], axis=0)
