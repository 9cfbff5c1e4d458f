"""Drawings of masks, as text and as images."""

import textwrap

import numpy as np

VISIBLE, HIDDEN = "■", "·"


def format_text(cells):
    """Format `cells`, bool (T, S), as text: a header with the keys j, then a line per query i."""
    digits = len(str(cells.shape[0] - 1))
    width = len(str(cells.shape[1] - 1))

    def line(head, entries):
        return head + "".join(f" {entry:>{width}}" for entry in entries)

    lines = [line(" " * digits + " j", range(cells.shape[1])), "i"]
    for i, visible in enumerate(cells):
        lines.append(line(f"{i:<{digits}}  ", (VISIBLE if v else HIDDEN for v in visible)))
    return "\n".join(lines)


def save_picture(cells, path, title):
    """Plot `cells`, a bool array (T, S), True = visible, with query 0 at the top, and save it.

    `path` is the path of an image file, and `title` a str above the figure. Raise an ImportError if
    matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "A plot of a mask needs matplotlib. Install it: pip install "
            '"keras-attention-zoo[viz]". Without a path, draw() returns text.'
        ) from error
    figure = Figure(figsize=(6, 6), layout="constrained")  # not pyplot, which has global state
    axes = figure.add_subplot()
    axes.imshow(cells, cmap="Blues", vmin=0, vmax=1.4, interpolation="nearest")  # row 0 on top
    axes.set(xlabel="key j", ylabel="query i", title="\n".join(textwrap.wrap(title, 60)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    if max(cells.shape) <= 64:  # in a larger grid, lines would hide the cells
        axes.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(cells.shape[0] + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="lightgrey", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
    figure.savefig(path, dpi=120)
