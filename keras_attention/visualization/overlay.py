"""Functions that plot attention weights over images, such as `attention_gallery`."""

import numpy as np

from keras_attention.visualization.figure import (
    add_color_bar,
    add_panels,
    count_columns,
    new_figure,
    save_figure,
)


def attention_gallery(
    images, weights, titles=None, *, grid=None, query=None, columns=6, title=None, path=None
):
    """Plot several images with their attention weights below, and return the matplotlib figure.

    The weights are averaged over heads. The color scale of each image ends at its largest weight.

    Args:
        images: (B, H, W) or (B, H, W, C), floats from 0 to 1, or uint8.
        weights: (B, N, T, S), as recorded by `record_attention` for these images.
        titles: list of B strings, such as the predictions, or None.
        grid: (rows, columns) of an image's patches. None infers them from the image.
        query: int, the index of the query whose weights are shown, or `"mean"` over all patches.
            None is the first token if there are tokens before the patches, else `"mean"`.
        columns: int, the maximum number of images in a row.
        title: str, the title of the figure, or None.
        path: file to save the figure to, such as `gallery.png`, or None.

    Raises:
        ValueError: shapes or lengths do not fit together.

    ```python
    import numpy as np
    import keras_attention as ka

    images = np.random.default_rng(0).uniform(size=(2, 8, 8, 1))
    weights = np.full((2, 3, 17, 17), 1 / 17)  # a class token and 4 × 4 patches
    figure = ka.visualization.attention_gallery(images, weights, ["a seven", "a one"])
    assert figure.axes[0].get_title() == "a seven"
    ```
    """
    images, weights = np.asarray(images), np.asarray(weights, "float32")
    if weights.ndim != 4 or len(weights) != len(images) or not len(images):
        raise ValueError(
            f"weights of shape {weights.shape} for images of shape {images.shape}: expected "
            "(B, N, T, S) and (B, H, W, C) with the same B."
        )
    if titles is not None and len(titles) != len(images):
        raise ValueError(f"{len(titles)} titles for {len(images)} images: expected as many titles.")
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    figure = new_figure(1.3 * columns + 0.3, 3.0 * rows + 0.5 * bool(title), title)
    cells = figure.add_gridspec(2 * rows, columns)
    for k in range(len(images)):
        upper = figure.add_subplot(cells[k // columns * 2, k % columns])
        lower = figure.add_subplot(cells[k // columns * 2 + 1, k % columns])
        _draw_pair(upper, lower, normalize_image(images[k]), weights[k].mean(axis=0), grid, query)
        upper.set_title(titles[k] if titles is not None else "", fontsize=8, parse_math=False)
        if k % columns == 0:
            upper.set_ylabel("image", fontsize=8)
            lower.set_ylabel("looked at", fontsize=8)
    return save_figure(figure, path)


def words_map(image, weights, words, *, grid=None, title=None, path=None):
    """Plot where in an image a model looked for each generated word, and return the figure.

    The matplotlib figure shows the image, and for each word the attention from this word to the
    image. All words share one color scale, from 0 to the largest weight.

    Args:
        image: (H, W) or (H, W, C), floats from 0 to 1, or uint8.
        weights: (1, N, T, S), the weights of cross-attention from T words to S patches. They are
            averaged over heads.
        words: list of T strings.
        grid: (rows, columns) of the image's patches. None infers them from the image.
        title: str, the title of the figure, or None.
        path: file to save the figure to, such as `words.png`, or None.

    Raises:
        ValueError: shapes or lengths do not fit together.

    ```python
    import numpy as np
    import keras_attention as ka

    image = np.random.default_rng(0).uniform(size=(8, 8, 1))
    figure = ka.visualization.words_map(image, np.full((1, 3, 2, 16), 1 / 16), ["a", "cell"])
    assert figure.axes[2].get_title() == "cell"
    ```
    """
    weights = np.asarray(weights, "float32")
    if weights.ndim != 4 or len(weights) != 1 or weights.shape[2] != len(words):
        raise ValueError(
            f"weights of shape {weights.shape} for {len(words)} words: expected (1, N, T, S), a "
            "row of T for each word."
        )
    panels = [(word, row[None]) for word, row in zip(words, weights[0].mean(axis=0), strict=True)]
    return save_figure(draw_overlay(panels, image, grid, None, title), path)


def _draw_pair(upper, lower, image, matrix, grid, query):
    heat = select_patch_weights(
        matrix, grid or infer_patch_grid(matrix.shape[1], image.shape[:2]), query
    )
    draw_image(upper, image)
    draw_heat(lower, image, heat, float(heat.max()) or 1.0)
    for axis in (upper, lower):
        axis.set_xticks([])
        axis.set_yticks([])


PANEL = 2.0  # inches
COLUMNS = 5


def draw_overlay(panels, image, grid, query, title):
    """Plot an image, and for each panel weights over the image, and return the figure.

    `panels` is a list of (title, weights (T, S)). `grid` is (rows, columns) of patches or None, and
    `query` the index of the query whose weights are shown, `"mean"` or None.
    """
    image = normalize_image(image)
    grid = grid or infer_patch_grid(panels[0][1].shape[1], image.shape[:2])
    heats = [(name, select_patch_weights(matrix, grid, query)) for name, matrix in panels]
    across = count_columns(len(heats) + 1, COLUMNS)
    down = -(-(len(heats) + 1) // across)
    ratio = image.shape[0] / image.shape[1]
    figure = new_figure(
        across * PANEL + 1.4, down * (PANEL * ratio + 0.4) + 0.5 + 0.4 * bool(title), title
    )
    axes = add_panels(figure, len(heats) + 1, across)
    draw_image(axes[0], image)
    axes[0].set_title("image", fontsize=9)
    top = max(float(heat.max()) for _, heat in heats) or 1.0
    for axis, (name, heat) in zip(axes[1:], heats, strict=True):
        shown = draw_heat(axis, image, heat, top)
        axis.set_title(name, fontsize=9, parse_math=False)
    for k, axis in enumerate(axes):
        left, bottom = k % across == 0, k + across > len(heats)
        axis.tick_params(labelsize=7, labelleft=left, labelbottom=bottom)
        axis.set_xlabel("column (pixels)" if bottom else "", fontsize=8)
        axis.set_ylabel("row (pixels)" if left else "", fontsize=8)
    add_color_bar(figure, shown, axes)
    return figure


def draw_image(axis, image):
    """Plot an image on matplotlib axes, with row 0 at the top and ticks in pixels.

    `axis` is the matplotlib axes, and `image` an array (H, W) or (H, W, C) from 0 to 1.
    """
    height, width = image.shape[:2]
    axis.imshow(image, extent=(0, width, height, 0), vmin=0.0, vmax=1.0, cmap="gray")


def draw_heat(axis, image, heat, top):
    """Plot weights `heat` (rows, columns) over a gray image, with colors from 0 to `top`.

    `axis` is a matplotlib axes, and `image` an array (H, W) or (H, W, C) from 0 to 1.
    """
    from matplotlib.colors import LinearSegmentedColormap

    # from transparent to strong orange, over the gray image
    colors = LinearSegmentedColormap.from_list("looked_at", [(1, 0.6, 0, 0), (1, 0.25, 0, 0.9)])
    height, width = image.shape[:2]
    gray = image if image.ndim == 2 else image[..., :3] @ np.array([0.299, 0.587, 0.114])
    axis.imshow(gray, extent=(0, width, height, 0), vmin=0.0, vmax=1.0, cmap="gray")
    return axis.imshow(
        heat,
        extent=(0, width, height, 0),
        vmin=0.0,
        vmax=top,
        cmap=colors,
        interpolation="nearest",  # a patch is one token
    )


def normalize_image(image):
    """Return an image as floats from 0 to 1, (H, W), (H, W, 3) or (H, W, 4), for `imshow`.

    Raise a ValueError if the shape is another one, or values are outside 0 to 1.
    """
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
            f"image has values from {low:.3g} to {high:.3g}: expected 0 to 1, or uint8."
        )
    return np.clip(image.astype("float32"), 0.0, 1.0)


def infer_patch_grid(keys, size):
    """Return the likely (rows, columns) of patches of an image, from the number of attention keys.

    The result is the largest grid with the aspect ratio of the image, `size` (height, width), and
    at most `keys` patches. The rest of the keys are prefix tokens (class token, registers). Raise a
    ValueError if such a grid does not exist.
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


def select_patch_weights(matrix, grid, query=None):
    """Return the weights from one query to the patches, (rows, columns), from `matrix` (T, S).

    `grid` is (rows, columns). Keys before the patches (class token, registers) are ignored. `query`
    is the index of a query, `"mean"` for the mean over all patches, or None for the first token, or
    the mean if no token comes before the patches. Raise a ValueError if the grid has more patches
    than there are keys, or the query does not exist.
    """
    rows, columns = grid
    queries, keys = matrix.shape
    prefix = keys - rows * columns
    if rows < 1 or columns < 1 or prefix < 0:
        raise ValueError(
            f"grid={rows, columns} has {rows * columns} patches, but there are {keys} keys: "
            "expected at most as many patches as keys."
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
