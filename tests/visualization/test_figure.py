"""Matplotlib is asked for politely, and left as it was."""

import sys

import numpy as np
import pytest

import keras_attention as ka


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'keras_attention\[viz\]'"):
        ka.visualization.attention_map(np.eye(3))


def test_drawing_needs_neither_pyplot_nor_a_display(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setenv("MPLBACKEND", "tkagg")
    monkeypatch.delenv("DISPLAY", raising=False)
    figure = ka.visualization.attention_map(np.eye(3))
    assert type(figure.canvas).__name__ == "FigureCanvasAgg"
    figure.canvas.draw()
