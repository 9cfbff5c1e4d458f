"""`attention_page`: writes a web page that follows attention through all layers of a model."""

import base64
import html
import json
import pathlib

import numpy as np

from keras_attention.files.io import write_whole
from keras_attention.visualization.attention_map import check_tokens
from keras_attention.visualization.overlay import infer_patch_grid, normalize_image
from keras_attention.visualization.rollout import read_layers

PAGE = pathlib.Path(__file__).parent / "static" / "attention.html"
DIGITS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "uint8")
STEPS = 4095  # a weight is a number from 0 to this, written as two digits of base 64


def attention_page(
    maps,
    tokens=None,
    outputs=None,
    *,
    image=None,
    grid=None,
    relevance=(),
    title="Attention",
    path=None,
):
    """Write a web page that follows attention through all layers of a model, for one example.

    The page shows the tokens in a column for each layer, with lines between the layers for the
    attention weights. If a token is chosen, by mouse, touch or keyboard, the page shows where it
    looked through all layers, with the shares of `rollout`. Each layer shows the mean over its
    heads, or one head. The page is one file of HTML, which loads nothing else.

    Each weight is rounded to a multiple of 1/4095 of the largest weight in its layer, and takes two
    bytes. Negative weights become 0.

    Args:
        maps: dict of weights (1, N, T, S), as recorded by `record_attention`, or a list of them.
            They must fit together as in `rollout`.
        tokens: list of str, the tokens of the input, or of the source in an encoder-decoder. If
            there are fewer tokens, the other positions are padding and are not shown. None shows
            the numbers of the positions.
        outputs: list of str, the names of the positions after the last layer, such as words with
            their tags. In an encoder-decoder they are the tokens of the target, and after a pooling
            they name its queries. None is `tokens`, or numbers.
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), floats from 0 to 1, or uint8, if the input
            is an image. Then `tokens` must be None.
        grid: (rows, columns) of the image's patches. None is the largest grid with the image's
            aspect ratio. Inputs before the patches are a class token or registers.
        relevance: list of (name of an output, scores (S,) of the input tokens), which are shown
            above the attention.
        title: str, the title of the page.
        path: file to write the page to, such as `attention.html`, or None.

    Returns:
        str, the HTML of the page.

    Raises:
        ValueError: shapes do not fit together.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = np.full((1, 2, 3, 3), 1 / 3)
    maps = {"block_0/attention": weights, "block_1/attention": weights}
    page = ka.visualization.attention_page(maps, ["The", "cat", "sat"], title="A cat")
    assert "<title>A cat</title>" in page
    ```
    """
    layers = read_layers(maps, "attention_page")
    if len(layers[0].weights) != 1:
        raise ValueError(
            f"attention_page got weights of {len(layers[0].weights)} examples, but a page shows "
            "one. Run the model on one example."
        )
    lengths = {each.queries: each.weights.shape[2] for each in layers}
    lengths |= {each.keys: each.weights.shape[3] for each in layers}
    if image is not None:
        tokens, first = _name_patches(tokens, lengths[0], image, grid)
    else:
        tokens = _choose_names("tokens", tokens, lengths[0])
        first = {"names": tokens}
    sequences = [first]
    if len(lengths) == 2:
        sequences.append({"names": _choose_names("outputs", outputs, lengths[1])})
    elif outputs is not None:
        check_tokens("outputs", outputs, len(tokens))
        first["ends"] = [*map(str, outputs), *tokens[len(outputs) :]]
    counts = [len(each["names"]) for each in sequences]
    content = {
        "title": str(title),
        "sequences": sequences,
        "layers": [_pack(each, counts[each.queries], counts[each.keys]) for each in layers],
        "relevance": [_read_scores(*each, counts[0]) for each in relevance],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    start, middle, end = PAGE.read_text("utf-8").replace("{{data}}", "{{title}}").split("{{title}}")
    # In a script element only "<" could end the element or begin a comment.
    page = "".join([start, html.escape(str(title)), middle, text.replace("<", "\\u003c"), end])
    if path is not None:
        path = pathlib.Path(path)
        if path.is_dir():
            raise ValueError(
                f"attention_page(path={str(path)!r}) is a folder: expected a file, such as"
                f" {str(path / 'attention.html')!r}."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page.encode("utf-8", "replace"))
    return page


def _choose_names(argument, names, length):
    """Return the names of the positions of a sequence as a list of str, by default numbers."""
    check_tokens(argument, names, length)
    if names is None:
        names = range(length) if length > 1 else ["pooled"]
    return [str(name) for name in names]


def _name_patches(tokens, length, image, grid):
    """Return the names of an image's patches, and how the page shows this sequence, a dict."""
    if tokens is not None:
        raise ValueError("tokens are for text, but an image is given. Leave out tokens or image.")
    image = normalize_image(image)
    rows, columns = grid or infer_patch_grid(length, image.shape[:2])
    before = length - rows * columns
    if rows < 1 or columns < 1 or before < 0:
        raise ValueError(
            f"grid={rows, columns} has {rows * columns} patches, but there are {length} inputs: "
            "expected at most as many patches as inputs."
        )
    names = [f"token {k}" for k in range(before)]
    names += [f"row {row}, column {column}" for row in range(rows) for column in range(columns)]
    colors = image[..., :3] if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
    pixels = np.rint(255 * colors).astype("uint8").tobytes()
    height, width = image.shape[:2]
    picture = {"width": width, "height": height, "pixels": base64.b64encode(pixels).decode()}
    return names, {"names": names, "grid": [int(rows), int(columns)], "picture": picture}


def _pack(layer, rows, columns):
    """Return how the page stores a layer, a dict, with `rows` queries and `columns` keys."""
    weights = np.maximum(layer.weights[0, :, :rows, :columns], 0)
    top = float(weights.max())
    numbers = np.rint(weights * (STEPS / (top or 1))).astype(int)
    digits = DIGITS[np.stack([numbers >> 6, numbers & 63], axis=-1)]
    names = ("path", "queries", "keys", "residual")
    fields = {name: getattr(layer, name) for name in names}
    return {**fields, "heads": len(weights), "top": top, "digits": digits.tobytes().decode()}


def _read_scores(name, scores, length):
    scores = np.asarray(scores, "float64")
    if scores.shape != (length,):
        raise ValueError(
            f"attention_page(relevance=) has scores {scores.shape} for {name!r}: expected"
            f" ({length},), a score for each input."
        )
    return {"name": str(name), "scores": [round(float(score), 5) for score in scores]}
