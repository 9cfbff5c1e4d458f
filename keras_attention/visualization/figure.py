"""Helpers that make, lay out and save matplotlib figures, without pyplot.

A `Figure` with its own canvas draws with Agg, whatever backend is configured. So figures are the
same in notebooks, on servers without a display and in threads, and no global state changes.
Matplotlib is imported only when a figure is drawn.
"""

import pathlib

from keras_attention.files.extras import import_extra

COLORS = "viridis"

# Fonts with Chinese, Japanese and Korean characters, which matplotlib's default font lacks.
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Arial Unicode MS",
)


def new_figure(width, height, title=None):
    """Return an empty matplotlib figure of `width` × `height` inches.

    `title` is a str above the figure, or None.
    """
    library = ("A figure", "matplotlib", "viz")
    figure = import_extra("matplotlib.figure", *library).Figure(
        figsize=(width, height), dpi=120, layout="constrained"
    )
    import_extra("matplotlib.backends.backend_agg", *library).FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, parse_math=False)
    return figure


def list_fonts():
    """Return a list of fonts for tokens: the default font, then fonts for more scripts."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in WIDE_FONTS if name in installed)]


def save_figure(figure, path):
    """Save a figure to the file `path`, in a new folder if needed, and return the figure.

    If `path` is None, nothing is saved.
    """
    if path is not None:
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return figure


def add_panels(figure, count, across):
    """Add `count` axes to a figure in rows of `across`, and return a list in reading order.

    If the rows cannot all be full, the first row is shorter, so that the labels below the last row
    apply to all columns.
    """
    rows = -(-count // across)
    grid = figure.add_gridspec(rows, across)
    cells = list_cells(count, across)
    return [figure.add_subplot(grid[cell // across, cell % across]) for cell in cells]


def list_cells(count, across):
    """Return the indices of the cells, counted row by row, that `count` panels fill.

    Rows have `across` cells. Only the first row may have empty cells.
    """
    empty = -count % across
    return [k if k < across - empty else k + empty for k in range(count)]


def count_columns(count, most):
    """Return the number of columns, at most `most`, that makes rows of `count` panels even."""
    rows = -(-count // max(most, 1))
    return -(-count // rows)


def add_color_bar(figure, image, axes):
    """Add one color bar for all `axes` at the right of a figure.

    `image` is the result of matplotlib's `imshow`, which has the color scale.
    """
    height = figure.get_size_inches()[1]
    bar = figure.colorbar(
        image, ax=axes, fraction=0.04, aspect=20, shrink=min(0.9, 3.5 / height), pad=0.02
    )
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
