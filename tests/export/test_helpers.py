"""The helper must fail where an export would be wrong."""

import keras
import pytest

from keras_attention.export import ExportError
from tests.export.conftest import make_labeler
from tests.export.helpers import assert_exports


class Forgetful(keras.layers.Layer):
    """Branches in Python on a length that is None while it is traced: a silent other function."""

    def call(self, x):
        return x * 2.0 if x.shape[1] is None else x

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


@pytest.mark.slow
def test_an_export_that_computes_something_else_fails():
    with pytest.raises(ExportError, match="results differ from the model's: 'logits'"):
        assert_exports(make_labeler(extra=Forgetful()))


@pytest.mark.slow
def test_stock_layers_pass():
    graph = assert_exports(make_labeler())
    assert {signature.name for signature in graph.signatures} == {"serving_default", "fixed"}
