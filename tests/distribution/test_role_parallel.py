"""Errors of `RoleParallel`. tests/backends/test_distribution.py tests it on JAX."""

import re

import keras
import pytest

import keras_attention as ka


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({"data": 2, "tensor": 4}, "has the axis 'tensor'. Expected one or more of 'data', "),
        ({"data": 0}, "RoleParallel(data=0): data must be a whole number of at least 1"),
        ({"model": "4"}, "RoleParallel(model='4'): model must be a whole number"),
        ({}, 'mesh={}: expected a dict with the number of devices of each axis, such as {"data"'),
        ((2, 4), "mesh=(2, 4): expected a dict"),
    ],
)
def test_an_invalid_mesh_is_refused(mesh, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ka.distribution.RoleParallel(mesh)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX lays weights out")
def test_other_backends_are_refused():
    message = f"only works on JAX, but Keras runs on {keras.backend.backend()}.*KERAS_BACKEND=jax"
    with pytest.raises(ValueError, match=message):
        ka.distribution.RoleParallel({"data": 8})
