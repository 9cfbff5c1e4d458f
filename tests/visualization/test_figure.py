"""Matplotlib is imported when needed, and its state does not change."""

import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.visualization.figure import list_fonts


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-attention-zoo\[viz\]'"):
        ka.visualization.attention_map(np.eye(3))


def test_drawing_needs_neither_pyplot_nor_a_display(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setenv("MPLBACKEND", "tkagg")
    monkeypatch.delenv("DISPLAY", raising=False)
    figure = ka.visualization.attention_map(np.eye(3))
    assert type(figure.canvas).__name__ == "FigureCanvasAgg"
    figure.canvas.draw()


def test_tokens_use_installed_fonts(monkeypatch):
    from matplotlib import font_manager

    assert list_fonts()[0] == "DejaVu Sans"
    wide = font_manager.FontEntry(name="PingFang SC")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [wide])
    assert list_fonts() == ["DejaVu Sans", "PingFang SC"]
