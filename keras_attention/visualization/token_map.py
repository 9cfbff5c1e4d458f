"""Token × token maps: one small matrix per head, queries down, keys across."""

import numpy as np

from keras_attention.visualization import figure as figures

CELL, SMALLEST, LARGEST = 0.21, 1.6, 6.0  # inches: one token, one panel
LONGEST = 16  # characters of a token that are written out
COLUMNS = 4


def draw_token_map(panels, tokens, key_tokens, title):
    """A figure of `panels` [(title, (T, S))] with labels `tokens` (T) and `key_tokens` (S)."""
    rows, columns = panels[0][1].shape
    height, width = _inches(rows), _inches(columns)
    across = figures.columns_for(len(panels), min(COLUMNS, int(16 / width)))
    down = -(-len(panels) // across)
    figure = figures.new_figure(
        across * (width + 0.15) + 1.9, down * (height + 0.35) + 1.3 + 0.4 * bool(title), title
    )
    axes = figures.small_multiples(figure, len(panels), across)
    top = max(float(matrix.max()) for _, matrix in panels) or 1.0
    for k, (axis, (name, matrix)) in enumerate(zip(axes, panels, strict=True)):
        image = axis.imshow(
            matrix, vmin=0.0, vmax=top, cmap=figures.COLOURS, origin="upper", aspect="auto"
        )
        axis.set_title(name, fontsize=9)
        lowest = k // across == down - 1  # labels above an empty place would part the rows
        _label(axis.xaxis, key_tokens, columns, "key", width, shown=lowest, rotation=90)
        _label(axis.yaxis, tokens, rows, "query", height, shown=k % across == 0)
    figures.colour_bar(figure, image, axes)
    return figure


def _inches(count):
    return min(max(count * CELL, SMALLEST), LARGEST)


def _label(axis, tokens, count, name, inches, *, shown, rotation=0):
    """Ticks with the tokens beside them, every one of them as long as there is room."""
    step = -(-count * 13 // int(inches * 100))  # a label of size 8 is 0.13 inches high
    ticks = np.arange(0, count, step)
    texts = ticks if tokens is None else [_short(tokens[k]) for k in ticks]
    axis.set_ticks(ticks, labels=texts if shown else [], fontsize=8, rotation=rotation)
    families = figures.fonts()
    for text in axis.get_ticklabels():
        text.set_parse_math(False)  # "$" is a token like any other
        text.set_fontfamily(families)
    if shown:
        axis.set_label_text(name if tokens is not None else f"{name} position", fontsize=9)


def _short(token):
    """The token on one line, at most `LONGEST` characters of it, blanks made visible."""
    token = str(token).replace("\n", "↵").replace("\t", "⇥")
    if not token.strip():
        token = "␣" * max(len(token), 1)
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"
