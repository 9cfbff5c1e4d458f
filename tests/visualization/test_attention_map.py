"""Token × token maps: places of weights and labels."""

import matplotlib
import numpy as np
import pytest

import keras_attention as ka
from tests.visualization.pixels import Pixels

WORDS = ["The", "old", "man", "sat"]


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


@pytest.fixture
def weights():
    """Return two heads over four tokens. In head 0, only query 1 attends, only to key 3."""
    weights = np.zeros((2, 4, 4), "float32")
    weights[0, 1, 3] = 1.0
    weights[1] = 0.25
    return weights


def test_queries_are_rows_and_keys_are_columns(weights):
    figure = ka.visualization.attention_map(weights, WORDS)
    bright, dark = matplotlib.colormaps["viridis"]([1.0, 0.0])[:, :3]
    head, colour_at = figure.axes[0], Pixels(figure)
    np.testing.assert_allclose(colour_at(head, 3, 1), bright, atol=0.02)
    for row in range(4):
        for column in range(4):
            if (row, column) != (1, 3):
                np.testing.assert_allclose(colour_at(head, column, row), dark, atol=0.02)
    top, bottom = (head.transData.transform((0, row))[1] for row in (0, 3))
    assert top > bottom


def test_panels_have_titles_labels_and_one_scale(weights):
    figure = ka.visualization.attention_map(weights, WORDS, title="layer 0")
    *panels, bar = figure.axes
    assert [panel.get_title() for panel in panels] == ["head 0", "head 1", "mean of heads"]
    assert panels[0].get_ylabel() == "query" and panels[0].get_xlabel() == "key"
    assert labels(panels[0].yaxis) == labels(panels[0].xaxis) == WORDS
    assert {panel.images[0].get_clim() for panel in panels} == {(0.0, 1.0)}
    assert bar.get_ylabel() == "attention weight"
    assert figure.get_suptitle() == "layer 0"


def test_lower_rows_keep_their_labels():
    figure = ka.visualization.attention_map(np.full((5, 3, 3), 1 / 3))
    *panels, _ = figure.axes
    assert len(panels) == 6
    rows = {round(panel.get_position().y0, 2) for panel in panels}
    assert len(rows) == 2
    with_keys = [panel.get_title() for panel in panels if panel.get_xlabel()]
    assert with_keys == ["head 3", "head 4", "mean of heads"]
    with_queries = [panel.get_title() for panel in panels if panel.get_ylabel()]
    assert with_queries == ["head 0", "head 3"]


def test_every_column_has_labels_where_a_row_is_not_full():
    figure = ka.visualization.attention_map(np.full((6, 3, 3), 1 / 3), ["one", "two", "three"])
    *panels, _ = figure.axes
    with_keys = [panel.get_title() for panel in panels if panel.get_xlabel()]
    assert with_keys == ["head 3", "head 4", "head 5", "mean of heads"]
    assert [panel.get_title() for panel in panels if panel.get_ylabel()] == ["head 0", "head 3"]
    figure.canvas.draw()
    heights = sorted({round(panel.get_position().height, 3) for panel in panels})
    gap = panels[0].get_position().y0 - panels[4].get_position().y1
    assert len(heights) == 1 and gap < 0.5 * heights[0]


def test_padding_is_left_out_of_cross_attention(weights):
    figure = ka.visualization.attention_map(weights[:, :3], ["a", "b"], WORDS[:3])
    panel = figure.axes[0]
    assert panel.images[0].get_array().shape == (2, 3)
    assert labels(panel.yaxis) == ["a", "b"] and labels(panel.xaxis) == WORDS[:3]


def test_unusual_tokens_are_readable(weights):
    odd = ["$", "a\nb", " ", "internationalization"]
    figure = ka.visualization.attention_map(weights, odd)
    figure.canvas.draw()
    assert labels(figure.axes[0].yaxis) == ["$", "a↵b", "␣", "internationaliz…"]
    tagged = ["internationalization  NOUN", "a  X", "   ", "x " * 9 + " " + "y" * 20]
    figure = ka.visualization.attention_map(weights, tagged)
    texts = labels(figure.axes[0].yaxis)
    assert texts[:3] == ["internationaliz…  NOUN", "a  X", "␣␣␣"]
    assert texts[3].endswith("…  " + "y" * 15 + "…")
    ka.visualization.attention_map(weights, ["$x_$", "$\\frac$", "y", "z"]).canvas.draw()


@pytest.mark.slow
def test_labels_of_many_tokens_are_thinned_out():
    figure = ka.visualization.attention_map(np.full((1, 200, 200), 1 / 200))
    figure.canvas.draw()
    ticks = figure.axes[0].yaxis.get_ticklabels()
    boxes = [text.get_window_extent() for text in ticks]
    assert 10 < len(boxes) < 100
    assert all(a.y0 >= b.y1 - 1 for a, b in zip(boxes, boxes[1:], strict=False))


def test_writes_png_without_a_display(weights, tmp_path):
    path = tmp_path / "new" / "map.png"
    ka.visualization.attention_map(weights, WORDS, path=path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_heads_selects_panels(weights):
    figure = ka.visualization.attention_map(weights, heads="mean")
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), weights.mean(axis=0))
    assert figure.axes[0].get_ylabel() == "query position"
    figure = ka.visualization.attention_map(weights, heads=[1])
    assert [axis.get_title() for axis in figure.axes][:-1] == ["head 1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": [2]}, r"heads=\[2\]: these weights have heads 0 to 1"),
        ({"heads": "max"}, "heads='max'"),
        ({"tokens": ["a"] * 5}, "5 tokens for weights over 4 positions"),
        ({"tokens": "abcd"}, "tokens='abcd' is one string"),
        ({"tokens": []}, "0 tokens"),
        ({"key_tokens": ["a"] * 9}, "9 key_tokens"),
        ({"weights": np.zeros((3, 2, 4, 4))}, r"batch of 3 examples.*weights\[0\]"),
        ({"weights": np.zeros(4)}, r"weights have the shape \(4,\)"),
        ({"grid": (2, 2)}, "Pass image as well"),
    ],
)
def test_errors(weights, change, message):
    with pytest.raises(ValueError, match=message):
        ka.visualization.attention_map(**{"weights": weights, **change})
