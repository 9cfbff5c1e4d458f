"""What a vision transformer looks at, laid over the picture it looks at."""

import numpy as np

from keras_attention.visualization import figure as figures

PANEL = 2.0  # inches
COLUMNS = 5


def draw_overlay(panels, image, grid, query, title):
    """A figure of the picture and, per panel (title, weights (T, S)), of the picture under them."""
    image = as_picture(image)
    grid = grid or patch_grid(panels[0][1].shape[1], image.shape[:2])
    heats = [(name, patch_weights(matrix, grid, query)) for name, matrix in panels]
    across = figures.columns_for(len(heats) + 1, COLUMNS)
    down = -(-(len(heats) + 1) // across)
    ratio = image.shape[0] / image.shape[1]
    figure = figures.new_figure(
        across * PANEL + 1.4, down * (PANEL * ratio + 0.4) + 0.5 + 0.4 * bool(title), title
    )
    axes = figures.small_multiples(figure, len(heats) + 1, across)
    draw_picture(axes[0], image)
    axes[0].set_title("image", fontsize=9)
    top = max(float(heat.max()) for _, heat in heats) or 1.0
    for axis, (name, heat) in zip(axes[1:], heats, strict=True):
        shown = draw_heat(axis, image, heat, top)
        axis.set_title(name, fontsize=9)
    for k, axis in enumerate(axes):
        _label(axis, left=k % across == 0, bottom=k + across > len(heats))
    figures.colour_bar(figure, shown, axes)
    return figure


def _label(axis, left, bottom):
    axis.tick_params(labelsize=7, labelleft=left, labelbottom=bottom)
    axis.set_xlabel("column (pixels)" if bottom else "", fontsize=8)
    axis.set_ylabel("row (pixels)" if left else "", fontsize=8)


def draw_picture(axis, image):
    """The picture alone, row 0 on top, axes in pixels."""
    height, width = image.shape[:2]
    axis.imshow(image, extent=(0, width, height, 0), vmin=0.0, vmax=1.0, cmap="gray")


def draw_heat(axis, image, heat, top):
    """The picture in grey with the patch grid `heat` (rows, columns) spread over it."""
    height, width = image.shape[:2]
    grey = image if image.ndim == 2 else image[..., :3] @ np.array([0.299, 0.587, 0.114])
    axis.imshow(grey, extent=(0, width, height, 0), vmin=0.0, vmax=1.0, cmap="gray")
    return axis.imshow(
        heat,
        extent=(0, width, height, 0),
        vmin=0.0,
        vmax=top,
        cmap=_see_through(),
        interpolation="nearest",  # a patch is one token: nothing between two is known
    )


def _see_through():
    """Colours from none, which shows the picture, to strong orange: hue says where, grey what."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("looked_at", [(1, 0.6, 0, 0), (1, 0.25, 0, 0.9)])


def as_picture(image):
    """An image (H, W), (H, W, 1), (H, W, 3 or 4), uint8 or floats in 0..1, ready for imshow."""
    image = np.asarray(image)
    if image.ndim == 4 and len(image) == 1:
        image = image[0]
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[-1] not in (3, 4)):
        raise ValueError(
            f"image of shape {image.shape}: expected (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)."
        )
    if image.dtype == "uint8":
        return image.astype("float32") / 255.0
    low, high = float(image.min()), float(image.max())
    if low < -1e-3 or high > 1.001:
        raise ValueError(
            f"image has values from {low:.3g} to {high:.3g}: expected floats in 0..1, or uint8."
        )
    return np.clip(image.astype("float32"), 0.0, 1.0)


def patch_grid(keys, size):
    """Rows and columns of the patches among `keys` tokens of an image of `size` (H, W).

    The largest grid with the image's own proportions that fits; what is left over are prefix
    tokens (class token, registers).
    """
    height, width = size
    divisor = int(np.gcd(height, width))
    rows, columns = height // divisor, width // divisor
    scale = int((keys / (rows * columns)) ** 0.5 + 1e-6)
    if not scale:
        raise ValueError(
            f"{keys} keys cannot be a grid of patches of an image {height} × {width}: "
            "pass grid=(rows, columns)."
        )
    return rows * scale, columns * scale


def patch_weights(matrix, grid, query=None):
    """The weights (T, S) of one query on the patches, as (rows, columns).

    Tokens before the patches (class token, registers) are skipped among the keys. The query is row
    `query`, or the mean of the patches' rows (`"mean"`); by default the first token where there are
    prefix tokens, else the mean.
    """
    rows, columns = grid
    queries, keys = matrix.shape
    prefix = keys - rows * columns
    if rows < 1 or columns < 1 or prefix < 0:
        raise ValueError(
            f"grid={rows, columns} has {rows * columns} patches; there are {keys} keys."
        )
    if query is None:
        query = 0 if prefix or queries == 1 else "mean"
    if query == "mean":
        row = matrix[prefix if queries == keys else 0 :].mean(axis=0)
    elif isinstance(query, (int, np.integer)) and 0 <= query < queries:
        row = matrix[query]
    else:
        raise ValueError(f"query={query!r}: expected 'mean' or 0 to {queries - 1}.")
    return row[prefix:].reshape(rows, columns)
