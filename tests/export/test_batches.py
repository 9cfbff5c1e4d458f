import numpy as np
import pytest

from keras_attention.export import batches
from keras_attention.export.checks.report import Tensor
from keras_attention.export.endpoint import Endpoint


def point(*inputs, lengths=None):
    return Endpoint("f", inputs, lengths or {t.name: (1,) for t in inputs}, ("y",), None)


IDS = Tensor("ids", (None, None), "int32")
FEATURES = Tensor("features", (None, None, 2), "float32")


@pytest.mark.parametrize(
    "inputs",
    [
        np.ones((2, 3)),
        {"ids": [[1, 1, 1], [1, 1, 1]]},
        [np.ones((2, 3))],
        [[[1, 1, 1], [1, 1, 1]]],
        [(np.ones((2, 3)), np.zeros(2))],
        ({"ids": np.ones((2, 3))} for _ in range(1)),
    ],
)
def test_one_batch_in_all_its_forms(inputs):
    (batch,) = batches.read_batches(inputs, point(IDS), "examples")
    assert batch["ids"].dtype == np.int32 and batch["ids"].tolist() == [[1, 1, 1]] * 2


def test_lists_follow_the_order_of_the_inputs():
    (batch,) = batches.read_batches(
        [[np.ones((1, 4)), np.zeros((1, 4, 2))]], point(IDS, FEATURES), "x"
    )
    assert batch["ids"].shape == (1, 4) and batch["features"].shape == (1, 4, 2)


def test_no_more_batches_are_read_than_needed():
    assert (
        len(batches.read_batches(iter([np.ones((1, 1))] * 99), point(IDS), "examples"))
        == batches.MOST
    )


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([], "examples= is empty"),
        ([{"words": [[1]]}], "examples= has a batch with words, but the model takes ids"),
        ([np.array([[0.5]])], "numbers with a fraction for the input 'ids'. Expected int32"),
        ([np.ones(3)], r"examples= has an array of shape \(3,\) for the input 'ids'"),
        ([np.ones((0, 3))], r"array of shape \(0, 3\)"),
    ],
)
def test_invalid_batches_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        batches.read_batches(inputs, point(IDS), "examples")


def test_the_number_of_arrays_must_be_right():
    with pytest.raises(ValueError, match="batches of 1 arrays, but the model takes 2 inputs"):
        batches.read_batches([[np.ones((1, 4))]], point(IDS, FEATURES), "examples")


def test_fixed_shapes_cut_pad_and_repeat():
    fixed = point(Tensor("ids", (3, 4), "int32"))
    batch = {"ids": np.array([[1, 2], [3, 4]], "int32")}
    assert batches.fit_batch(batch, fixed)["ids"].tolist() == [
        [1, 2, 0, 0],
        [3, 4, 0, 0],
        [1, 2, 0, 0],
    ]
    batch = {"ids": np.arange(6, dtype="int32").reshape(1, 6)}
    assert batches.fit_batch(batch, fixed)["ids"].tolist() == [[0, 1, 2, 3]] * 3


def test_free_lengths_stay_or_are_halved():
    batch = {"ids": np.arange(10, dtype="int32").reshape(2, 5)}
    assert batches.fit_batch(batch, point(IDS), rows=1)["ids"].tolist() == [[0, 1, 2, 3, 4]]
    assert batches.fit_batch(batch, point(IDS), halve=True)["ids"].tolist() == [[0, 1], [5, 6]]


def test_only_length_axes_are_fixed():
    images = point(Tensor("images", (None, 8, 8, 1), "float32"), lengths={"images": ()})
    assert (
        batches.fit_batch({"images": np.ones((2, 8, 8, 1))}, images, 1, True)["images"].shape[1]
        == 8
    )


def test_padding_fills_the_end_of_the_first_row_of_ids():
    batch = {"ids": np.ones((2, 8), "int32"), "features": np.ones((2, 8, 2), "float32")}
    padded = batches.pad_first_row(batch, 1 / 4, {})
    assert padded["ids"].tolist() == [[1] * 6 + [0] * 2, [1] * 8]
    assert padded["features"].min() == 1 and batch["ids"].min() == 1
