"""Static shapes in graphs."""

import ast

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.core import shapes
from tests.conftest import ROOT


def test_tile_equals_numpy():
    x = np.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_array_equal(shapes.tile(x, (2, 1, 3)), np.tile(x, (2, 1, 3)))


@pytest.mark.tensorflow
def test_tile_keeps_known_sizes_in_graphs():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 2, 3))])
    def trace(x):
        return shapes.tile(x, (1, 4, 2)), shapes.tile(x[:1], (ops.shape(x)[0], 1, 1))

    tiled = trace.get_concrete_function().structured_outputs
    assert [tuple(x.shape) for x in tiled] == [(None, 8, 6), (None, 2, 3)]
    symbolic = keras.KerasTensor((None, 2, 3))
    assert shapes.tile(symbolic, (1, 4, 2)).shape == (None, 8, 6)


def test_layers_keep_known_sizes():
    """Guard against Keras 3.12, whose `ops.tile` loses sizes."""
    package = ROOT / "keras_attention"
    users = {
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "ops.tile"
    }
    assert users == {"shapes.py"}
