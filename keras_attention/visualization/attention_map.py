"""`attention_map`: attention weights as a picture."""

from keras_attention.visualization.figure import save
from keras_attention.visualization.overlay import draw_overlay
from keras_attention.visualization.panels import head_panels, one_example
from keras_attention.visualization.token_map import draw_token_map


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
    """Draws the attention weights of one example; returns the matplotlib figure.

    Without an image: one token × token matrix per head, queries down the y axis, keys along the
    x axis, query 0 on top. With an image: the image, and laid over it what one query looks at, per
    head and in the mean; patch (0, 0) is top left. All panels share one colour scale, from 0.

    Needs matplotlib (`pip install 'keras_attention[viz]'`), which is imported when this is called.

    Args:
        weights: (N, T, S), (1, N, T, S) or (T, S), as `record_attention` gives them.
        tokens: the T query tokens. Fewer than T: the rest is padding and is left out.
        key_tokens: the S key tokens; default `tokens` where T equals S (self-attention).
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); floats in 0..1, or uint8.
        grid: (rows, columns) of the image's patches; default the largest grid of the image's
            proportions. Keys before the patches (class token, registers) are not drawn.
        query: int, whose weights to lay over the image, or `"mean"` for the mean over the patches
            (mean pooling); default the first token, the class token, when there are tokens before
            the patches, else the mean.
        heads: `"all"` (each, and the mean of several), `"mean"`, or a list of head numbers.
        title: str, written over the picture.
        path: where to write the picture; the suffix says the format (`.png`, `.svg`, `.pdf`).

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
    weights = one_example(weights)
    if image is not None:
        if tokens is not None or key_tokens is not None:
            raise ValueError(
                "tokens go with text, image and grid with pictures: pass one or other."
            )
        figure = draw_overlay(head_panels(weights, heads), image, grid, query, title)
        return save(figure, path)
    if grid is not None or query is not None:
        raise ValueError("grid and query say how to lay weights over an image: pass image too.")
    if key_tokens is None and weights.shape[1] == weights.shape[2]:
        key_tokens = tokens
    rows = _length("tokens", tokens, weights.shape[1])
    columns = _length("key_tokens", key_tokens, weights.shape[2])
    panels = head_panels(weights[:, :rows, :columns], heads)
    return save(draw_token_map(panels, tokens, key_tokens, title), path)


def _length(name, tokens, limit):
    if tokens is None:
        return limit
    if isinstance(tokens, str):
        raise ValueError(f"{name}={tokens!r} is one string: pass a list of tokens.")
    if not 0 < len(tokens) <= limit:
        raise ValueError(f"{len(tokens)} {name} for weights over {limit} positions.")
    return len(tokens)
