"""`attention_map`: attention weights as pictures, and token × token maps."""

import numpy as np
from keras import ops

from keras_attention.visualization.figure import (
    COLORS,
    add_color_bar,
    add_panels,
    count_columns,
    list_cells,
    list_fonts,
    new_figure,
    save_figure,
)
from keras_attention.visualization.overlay import draw_overlay


def attention_map(
    weights,
    tokens=None,
    key_tokens=None,
    *,
    image=None,
    grid=None,
    query=None,
    heads="all",
    title=None,
    path=None,
):
    """Draw the attention weights of one example. Returns the matplotlib figure.

    Without an image: one token × token matrix per head, queries down the y axis, keys along the x
    axis, query 0 on top. With an image: the image under the weights of one query, per head and in
    the mean. Patch (0, 0) is top left. All panels share one color scale, from 0.

    Needs matplotlib (`pip install 'keras-attention-zoo[viz]'`), imported when this is called.

    Args:
        weights: (N, T, S), (1, N, T, S) or (T, S), as `record_attention` gives them.
        tokens: the T query tokens. With fewer, the rest is padding and is left out.
        key_tokens: the S key tokens. By default `tokens` if T equals S (self-attention).
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4). Floats in 0..1, or uint8.
        grid: (rows, columns) of the image's patches. By default the largest grid of the image's
            proportions. Keys before the patches (class token, registers) are not drawn.
        query: int, the query whose weights to draw over the image, or `"mean"` for the mean over
            the patches (mean pooling). By default the first token if there are tokens before the
            patches, else the mean.
        heads: `"all"` (each, and the mean of several), `"mean"`, or a list of head numbers.
        title: str, written over the picture.
        path: file for the picture. The suffix gives the format (`.png`, `.svg`, `.pdf`).

    Raises:
        ValueError: shapes that do not fit together.  ImportError: matplotlib is missing.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = np.eye(3)[None]  # one head, each token looks at itself
    figure = ka.visualization.attention_map(weights, ["The", "cat", "sat"])
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["The", "cat", "sat"]
    assert panel.get_ylabel() == "query" and panel.get_xlabel() == "key"
    ```
    """
    weights = select_example(weights)
    if image is not None:
        if tokens is not None or key_tokens is not None:
            raise ValueError(
                "tokens are for text, image and grid for pictures: pass one or the other."
            )
        figure = draw_overlay(select_panels(weights, heads), image, grid, query, title)
        return save_figure(figure, path)
    if grid is not None or query is not None:
        raise ValueError("grid and query say how to lay weights over an image: pass image too.")
    if key_tokens is None and weights.shape[1] == weights.shape[2]:
        key_tokens = tokens
    rows = _check_tokens("tokens", tokens, weights.shape[1])
    columns = _check_tokens("key_tokens", key_tokens, weights.shape[2])
    panels = select_panels(weights[:, :rows, :columns], heads)
    return save_figure(draw_token_map(panels, tokens, key_tokens, title), path)


def _check_tokens(name, tokens, limit):
    if tokens is None:
        return limit
    if isinstance(tokens, str):
        raise ValueError(f"{name}={tokens!r} is one string: pass a list of tokens.")
    if not 0 < len(tokens) <= limit:
        raise ValueError(f"{len(tokens)} {name} for weights over {limit} positions.")
    return len(tokens)


def select_example(weights):
    """Return weights (T, S), (N, T, S) or (1, N, T, S) as a float32 array (N, T, S)."""
    if not isinstance(weights, np.ndarray):
        weights = ops.convert_to_numpy(weights)
    weights = np.asarray(weights, "float32")
    if weights.ndim == 4 and len(weights) != 1:
        raise ValueError(
            f"weights of shape {weights.shape} are a batch of {len(weights)} examples; a picture "
            "shows one of them: pass weights[0], for example."
        )
    if weights.ndim not in (2, 3, 4) or not weights.size:
        raise ValueError(
            f"weights of shape {weights.shape} are no attention weights: expected (N, T, S), "
            "(1, N, T, S) or (T, S), N heads, T queries, S keys."
        )
    return weights.reshape(-1, *weights.shape[-2:])


def select_panels(weights, heads="all"):
    """Return the panels to draw, [(title, matrix (T, S))], of weights (N, T, S).

    Args:
        heads: `"all"` (each head, and the mean of several), `"mean"`, or a list of head numbers.
    """
    count = len(weights)
    mean = ("mean of heads", weights.mean(axis=0))
    if isinstance(heads, str):
        if heads not in ("all", "mean"):
            raise ValueError(f"heads={heads!r}: expected 'all', 'mean' or a list of head numbers.")
        if heads == "mean":
            return [mean]
        each = [(f"head {n}", weights[n]) for n in range(count)]
        return each if count == 1 else [*each, mean]
    heads = [int(n) for n in np.atleast_1d(heads)]
    if not heads or any(not 0 <= n < count for n in heads):
        raise ValueError(f"heads={heads}: these weights have heads 0 to {count - 1}.")
    return [(f"head {n}", weights[n]) for n in heads]


CELL, SMALLEST, LARGEST = 0.21, 1.6, 6.0  # inches: one token; the limits of a panel
LONGEST = 16  # characters of a token that are shown
TAGGED = "  "  # between a token and its tag
COLUMNS = 4


def draw_token_map(panels, tokens, key_tokens, title):
    """Draw `panels` [(title, (T, S))] with labels `tokens` (T) and `key_tokens` (S)."""
    rows, columns = panels[0][1].shape
    height, width = _compute_inches(rows), _compute_inches(columns)
    across = count_columns(len(panels), min(COLUMNS, int(16 / width)))
    down = -(-len(panels) // across)
    figure = new_figure(
        across * (width + 0.15) + 1.9, down * (height + 0.35) + 1.3 + 0.4 * bool(title), title
    )
    axes = add_panels(figure, len(panels), across)
    top = max(float(matrix.max()) for _, matrix in panels) or 1.0
    cells = list_cells(len(panels), across)
    for cell, axis, (name, matrix) in zip(cells, axes, panels, strict=True):
        image = axis.imshow(matrix, vmin=0.0, vmax=top, cmap=COLORS, origin="upper", aspect="auto")
        axis.set_title(name, fontsize=9)
        lowest = cell // across == down - 1
        _label_tokens(axis.xaxis, key_tokens, columns, "key", width, shown=lowest, rotation=90)
        _label_tokens(axis.yaxis, tokens, rows, "query", height, shown=cell % across == 0)
    add_color_bar(figure, image, axes)
    return figure


def _compute_inches(count):
    return min(max(count * CELL, SMALLEST), LARGEST)


def _label_tokens(axis, tokens, count, name, inches, *, shown, rotation=0):
    """Set ticks labelled with tokens, all of them if there is room."""
    step = -(-count * 13 // int(inches * 100))  # a label of size 8 is 0.13 inches high
    ticks = np.arange(0, count, step)
    texts = ticks if tokens is None else [_shorten(tokens[k]) for k in ticks]
    axis.set_ticks(ticks, labels=texts if shown else [], fontsize=8, rotation=rotation)
    families = list_fonts()
    for text in axis.get_ticklabels():
        text.set_parse_math(False)  # "$" is a token like any other
        text.set_fontfamily(families)
    if shown:
        axis.set_label_text(name if tokens is not None else f"{name} position", fontsize=9)


def _shorten(token):
    """Return the token on one line, at most `LONGEST` characters, with visible blanks.

    A tag behind it, after two spaces, is shown, too.
    """
    token, tag = str(token).replace("\n", "↵").replace("\t", "⇥"), ""
    if not token.strip():
        token = "␣" * max(len(token), 1)
    elif TAGGED in token.strip():
        token, _, tag = token.rpartition(TAGGED)
        tag = TAGGED + _cut(tag)
    return _cut(token) + tag


def _cut(text):
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
