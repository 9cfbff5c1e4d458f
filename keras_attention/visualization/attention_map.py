"""`attention_map`: plots attention weights as matrices of tokens, or over an image."""

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
    """Plot the attention weights of one example, and return the matplotlib figure.

    Without an image, the figure has a matrix for each head, with queries on the y axis (query 0 at
    the top) and keys on the x axis. With an image, the figure shows the weights of one query over
    the image, for each head and for their mean. All panels share one color scale, which starts at
    0. The function needs matplotlib (`pip install 'keras-attention-zoo[viz]'`).

    Args:
        weights: (N, T, S), (1, N, T, S) or (T, S), as recorded by `record_attention`.
        tokens: list of the T query tokens. If there are fewer tokens, the other queries are padding
            and are not shown. None shows positions.
        key_tokens: list of the S key tokens. None is `tokens` if T equals S (self-attention).
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), floats from 0 to 1, or uint8.
        grid: (rows, columns) of the image's patches. None is the largest grid with the image's
            aspect ratio. Keys before the patches (class token, registers) are not shown.
        query: int, the index of the query whose weights are shown over the image, or `"mean"` for
            the mean over all patches. None is the first token if there are tokens before the
            patches, else `"mean"`.
        heads: `"all"` for each head and (if there are several) their mean, `"mean"` for the mean
            only, or a list of head indices.
        title: str, the title of the figure, or None.
        path: file to save the figure to, or None. The suffix selects the format (`.png`, `.svg`,
            `.pdf`).

    Raises:
        ValueError: shapes do not fit together.
        ImportError: matplotlib is not installed.

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
                "tokens are for text, but an image is given. Leave out tokens or image."
            )
        figure = draw_overlay(select_panels(weights, heads), image, grid, query, title)
        return save_figure(figure, path)
    if grid is not None or query is not None:
        raise ValueError("grid and query are for weights over an image. Pass image as well.")
    if key_tokens is None and weights.shape[1] == weights.shape[2]:
        key_tokens = tokens
    rows = check_tokens("tokens", tokens, weights.shape[1])
    columns = check_tokens("key_tokens", key_tokens, weights.shape[2])
    panels = select_panels(weights[:, :rows, :columns], heads)
    return save_figure(draw_token_map(panels, tokens, key_tokens, title), path)


def check_tokens(name, tokens, limit):
    """Return the number of `tokens`, or `limit` if `tokens` is None.

    `tokens` is a list of str. If there are more than `limit`, a ValueError names the argument
    `name`.
    """
    if tokens is None:
        return limit
    if isinstance(tokens, str):
        raise ValueError(f"{name}={tokens!r} is one string. Pass a list of tokens.")
    if not 0 < len(tokens) <= limit:
        raise ValueError(f"{len(tokens)} {name} for weights over {limit} positions.")
    return len(tokens)


def select_example(weights):
    """Return weights (T, S), (N, T, S) or (1, N, T, S) as a float32 array (N, T, S).

    Raise a ValueError if the shape is another one, such as a batch of several examples.
    """
    if not isinstance(weights, np.ndarray):
        weights = ops.convert_to_numpy(weights)
    weights = np.asarray(weights, "float32")
    if weights.ndim == 4 and len(weights) != 1:
        raise ValueError(
            f"weights of shape {weights.shape} are a batch of {len(weights)} examples, but a "
            "figure shows one. Pass weights[0], for example."
        )
    if weights.ndim not in (2, 3, 4) or not weights.size:
        raise ValueError(
            f"weights have the shape {weights.shape}: expected (N, T, S), (1, N, T, S) or (T, S), "
            "N heads, T queries, S keys."
        )
    return weights.reshape(-1, *weights.shape[-2:])


def select_panels(weights, heads="all"):
    """Return the panels of a figure, a list of (title, matrix (T, S)).

    Args:
        weights: array (N, T, S).
        heads: `"all"` for each head and their mean, `"mean"`, or a list of head indices.

    Raises:
        ValueError: a head does not exist.
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


CELL, SMALLEST, LARGEST = 0.21, 1.6, 6.0  # size of a token, and size limits of a panel, in inches
LONGEST = 16  # maximum number of characters of a token that are shown
TAGGED = "  "  # separates a token from its tag
COLUMNS = 4


def draw_token_map(panels, tokens, key_tokens, title):
    """Plot attention matrices, and return the figure.

    `panels` is a list of (title, matrix (T, S)). `tokens` and `key_tokens` are lists of str or
    None, and `title` is the title of the figure.
    """
    rows, columns = panels[0][1].shape
    height, width = (min(max(n * CELL, SMALLEST), LARGEST) for n in (rows, columns))
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


def _label_tokens(axis, tokens, count, name, inches, *, shown, rotation=0):
    """Write tokens at an axis of a matrix, or every k-th token if there is not enough room.

    `count` is the number of tokens, `name` the label of the axis, and `inches` its length. `shown`
    tells whether the labels are shown, and `rotation` is their angle in degrees.
    """
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
    """Return a token with at most 16 characters, on one line and with visible whitespace.

    A tag, which follows the token after two spaces, is shortened separately.
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
