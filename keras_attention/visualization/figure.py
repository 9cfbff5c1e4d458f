"""Matplotlib figures, made without pyplot and imported when a picture is drawn.

A bare `Figure` draws with Agg, whatever backend is configured. So pictures are the same in a
notebook, on a server without a display and in threads, and no global state changes.
"""

import pathlib

from keras_attention.files.extras import import_extra

COLORS = "viridis"

# Fonts with Chinese, Japanese and Korean, which matplotlib's own font lacks.
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
    """Make an empty figure of `width` × `height` inches with an Agg canvas."""
    library = ("A picture", "matplotlib", "viz")
    figure = import_extra("matplotlib.figure", *library).Figure(
        figsize=(width, height), dpi=120, layout="constrained"
    )
    import_extra("matplotlib.backends.backend_agg", *library).FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, parse_math=False)
    return figure


def list_fonts():
    """List font families for tokens: the default, then installed ones with more scripts."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in WIDE_FONTS if name in installed)]


def save_figure(figure, path):
    """Write `figure` to `path`, if given, and make its folder. Return the figure."""
    if path is not None:
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return figure


def add_panels(figure, count, across):
    """Add `count` axes in rows of `across`, and return them as a list in reading order.

    The first row may be shorter: below each panel there is another one, or labels.
    """
    rows = -(-count // across)
    grid = figure.add_gridspec(rows, across)
    cells = list_cells(count, across)
    return [figure.add_subplot(grid[cell // across, cell % across]) for cell in cells]


def list_cells(count, across):
    """List the cells of `count` panels in reading order. The first row may be shorter."""
    empty = -count % across
    return [k if k < across - empty else k + empty for k in range(count)]


def count_columns(count, most):
    """Return the number of columns, at most `most`, in which `count` panels fill rows evenly."""
    rows = -(-count // max(most, 1))
    return -(-count // rows)


def add_color_bar(figure, image, axes):
    """Add one color bar for all `axes`, at the right."""
    height = figure.get_size_inches()[1]
    bar = figure.colorbar(
        image, ax=axes, fraction=0.04, aspect=20, shrink=min(0.9, 3.5 / height), pad=0.02
    )
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
