"""Many pictures at once, each with what the model looked at."""

import numpy as np

from keras_attention.visualization import figure as figures
from keras_attention.visualization.overlay import (
    as_picture,
    draw_heat,
    draw_picture,
    patch_grid,
    patch_weights,
)


def attention_gallery(
    images, weights, titles=None, *, grid=None, query=None, columns=6, title=None, path=None
):
    """Draws several images, under each the mean over heads of what the model looked at in it.

    The colour scale runs from 0 to each image's own largest weight, so that pictures with sharp
    and with spread attention can both be read; `attention_map` shows numbers.

    Args:
        images: (B, H, W[, C]), floats in 0..1 or uint8.
        weights: (B, N, T, S), as `record_attention` gives them for these images.
        titles: B strings, for example the predictions.
        grid, query: as for `attention_map`.
        columns: how many images stand side by side.
        title, path: as for `attention_map`.

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
        raise ValueError(f"{len(titles)} titles for {len(images)} images.")
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    figure = figures.new_figure(1.3 * columns + 0.3, 3.0 * rows + 0.5 * bool(title), title)
    cells = figure.add_gridspec(2 * rows, columns)
    for k in range(len(images)):
        upper = figure.add_subplot(cells[k // columns * 2, k % columns])
        lower = figure.add_subplot(cells[k // columns * 2 + 1, k % columns])
        _pair(upper, lower, as_picture(images[k]), weights[k].mean(axis=0), grid, query)
        upper.set_title(titles[k] if titles is not None else "", fontsize=8, parse_math=False)
        if k % columns == 0:
            upper.set_ylabel("image", fontsize=8)
            lower.set_ylabel("looked at", fontsize=8)
    return figures.save(figure, path)


def _pair(upper, lower, image, matrix, grid, query):
    heat = patch_weights(matrix, grid or patch_grid(matrix.shape[1], image.shape[:2]), query)
    draw_picture(upper, image)
    draw_heat(lower, image, heat, float(heat.max()) or 1.0)
    for axis in (upper, lower):
        axis.set_xticks([])
        axis.set_yticks([])
