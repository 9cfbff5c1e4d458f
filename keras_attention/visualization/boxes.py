"""`boxes_map`: plots predicted boxes over an image, and the attention that led to them."""

import numpy as np

from keras_attention.visualization.figure import (
    add_color_bar,
    add_panels,
    count_columns,
    new_figure,
    save_figure,
)
from keras_attention.visualization.overlay import draw_heat, draw_image, normalize_image

PANEL, COLUMNS = 3.2, 4


def boxes_map(image, boxes, titles, weights=None, *, grid=None, title=None, path=None):
    """Plot boxes over an image, such as detected objects, and return the figure.

    The first panel of the matplotlib figure shows all boxes. With weights, there is another panel
    for each box, which shows the box and the attention weights of its query, averaged over heads.
    These panels share one color scale, which starts at 0.

    Args:
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), floats from 0 to 1, or uint8.
        boxes: list of boxes (x0, y0, x1, y1) in pixels of the image.
        titles: list of strings, one for each box, such as its class and score.
        weights: (k, N, S), the attention weights of the queries of the first k boxes, or None.
        grid: (rows, columns) of the S keys. Required with weights.
        title: str, the title of the figure, or None.
        path: file to save the figure to, such as `boxes.png`, or None.

    Raises:
        ValueError: shapes do not fit together.
        ImportError: matplotlib is not installed.

    ```python
    import numpy as np
    import keras_attention as ka

    image, weights = np.ones((20, 30, 3)), np.full((1, 2, 6), 1 / 6)
    figure = ka.visualization.boxes_map(image, [(5, 5, 15, 13)], ["cell"], weights, grid=(2, 3))
    assert figure.axes[1].get_title() == "cell"
    ```
    """
    image = normalize_image(image)
    if len(boxes) != len(titles):
        raise ValueError(f"{len(boxes)} boxes and {len(titles)} titles: expected as many titles.")
    heats = [] if weights is None else [np.asarray(w, "float32").mean(axis=0) for w in weights]
    if heats and (grid is None or heats[0].size != grid[0] * grid[1] or len(heats) > len(boxes)):
        raise ValueError(
            f"weights of shape {np.shape(weights)} for {len(boxes)} boxes and grid={grid}: "
            "expected (k, N, rows · columns), k at most the number of boxes."
        )
    across = count_columns(len(heats) + 1, COLUMNS)
    down = -(-(len(heats) + 1) // across)
    height = PANEL * image.shape[0] / image.shape[1] + 0.4
    figure = new_figure(across * PANEL + bool(heats), down * height + 0.4 * bool(title), title)
    first, *panels = add_panels(figure, len(heats) + 1, across)
    draw_image(first, image)
    for box, words in zip(boxes, titles, strict=True):
        _draw_box(first, box, words)
    top = max((float(heat.max()) for heat in heats), default=0.0) or 1.0
    for axis, heat, box, words in zip(panels, heats, boxes, titles, strict=False):
        shown = draw_heat(axis, image, heat.reshape(grid), top)
        _draw_box(axis, box)
        axis.set_title(words, fontsize=9, parse_math=False)
    for axis in (first, *panels):
        axis.set_xticks([])
        axis.set_yticks([])
    if heats:
        add_color_bar(figure, shown, [first, *panels])
    return save_figure(figure, path)


def _draw_box(axis, box, words=None):
    from matplotlib.patches import Rectangle

    x0, y0, x1, y1 = map(float, box)
    axis.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, color="C0", linewidth=1.2))
    if words is not None:
        axis.text(
            x0, y0, words, fontsize=6, color="white", va="bottom", parse_math=False,
            bbox={"facecolor": "C0", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
