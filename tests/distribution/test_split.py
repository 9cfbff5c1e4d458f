"""How weights are split: roles, indivisible sizes, vectors, one axis each."""

import pytest

from keras_attention.distribution import ROLES, split_weight
from keras_attention.distribution.split import FULLY_SHARDED, TENSOR

MESH = {"data": 2, "model": 4}


@pytest.mark.parametrize(
    ("axes", "shape", "whole", "sharded"),
    [
        (("embed", "heads", "head_dim"), (6, 8, 3), (None, "model", None), ("data", "model", None)),
        (("heads", "head_dim", "embed"), (8, 3, 6), ("model", None, None), ("model", None, "data")),
        (("vocabulary", "embed"), (40, 6), ("model", None), ("model", "data")),
        (("mlp", "embed"), (16, 6), ("model", None), ("model", "data")),
        (("heads", "heads"), (4, 4), ("model", None), ("model", None)),
        (("units", "units"), (4, 4), (None, None), ("data", None)),
        (("rows", "head_dim"), (8, 8), (None, None), (None, None)),
        (("batch", "inner"), (8, 8), ("data", None), ("data", None)),
        (("mlp",), (16,), ("model",), ("model",)),
        (("embed",), (6,), (None,), (None,)),
        (("rows", "rows", "embed"), (1, 1, 6), (None, None, None), (None, None, None)),
        ((), (), (), ()),
        (None, (8, 8), (None, None), (None, None)),
    ],
)
def test_split_of_common_weights(axes, shape, whole, sharded):
    assert split_weight(axes, shape, MESH)[0] == whole
    assert split_weight(axes, shape, MESH, fully_sharded=True)[0] == sharded


def test_indivisible_axes_stay_whole_and_report_why():
    axes = ("embed", "key_value_heads", "head_dim")
    assert split_weight(axes, (6, 2, 8), MESH, fully_sharded=True) == (
        ("data", None, None),
        ["key_value_heads=2 is not a multiple of model=4"],
    )
    assert split_weight(axes, (7, 8, 8), MESH, fully_sharded=True) == (
        (None, "model", None),
        ["embed=7 is not a multiple of data=2"],
    )


def test_the_first_axis_that_divides_is_split():
    split, reasons = split_weight(("heads", "vocabulary"), (3, 8), MESH)
    assert split == (None, "model") and reasons == ["heads=3 is not a multiple of model=4"]


def test_vectors_are_not_fully_sharded():
    assert split_weight(("embed",), (6,), MESH, fully_sharded=True)[1] == [
        "a vector is not split along data"
    ]


def test_a_mesh_axis_of_one_device_splits_nothing():
    for mesh in ({"data": 1, "model": 1}, {"data": 1}):
        assert split_weight(("embed", "mlp"), (8, 8), mesh, fully_sharded=True) == (
            (None, None),
            [],
        )


def test_every_split_role_exists():
    assert TENSOR | FULLY_SHARDED <= set(ROLES) and not TENSOR & FULLY_SHARDED
