"""The picture of a confusion matrix."""

import numpy as np
import pytest

import keras_attention as ka


def list_labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_color_is_the_share_of_a_row(tmp_path):
    counts = {"a": {"a": 98, "b": 2}, "$b": {"a": 1, "$b": 3}}
    figure = ka.visualization.confusion_map(counts, title="T", path=tmp_path / "x" / "c.png")
    axis = figure.axes[0]
    assert list_labels(axis.yaxis) == list_labels(axis.xaxis) == ["a", "$b", "b"]
    expected = [[0.98, 0, 0.02], [0.25, 0.75, 0], [0, 0, 0]]
    np.testing.assert_allclose(axis.images[0].get_array(), expected)
    assert [text.get_text() for text in axis.texts] == ["98", "2", "1", "3"]
    assert (axis.get_ylabel(), axis.get_xlabel()) == ("true", "predicted")
    assert (tmp_path / "x" / "c.png").read_bytes().startswith(b"\x89PNG")


def test_many_classes_have_no_numbers():
    axis = ka.visualization.confusion_map(np.ones((30, 30), int)).axes[0]
    assert not axis.texts and list_labels(axis.yaxis)[:2] == ["0", "1"]


@pytest.mark.parametrize(
    ("counts", "labels", "message"),
    [
        (np.ones((2, 3)), None, r"confusion of shape \(2, 3\): expected counts"),
        ({}, None, "expected counts"),
        (np.ones((2, 2)), ["a"], "1 labels for 2 classes: give one label for each class"),
    ],
)
def test_refuses_other_matrices(counts, labels, message):
    with pytest.raises(ValueError, match=message):
        ka.visualization.confusion_map(counts, labels)
