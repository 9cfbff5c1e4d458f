"""The window around each step of a decoder. `test_attention_cell` tests it in a decoder."""

import numpy as np

from keras_attention.recurrent import LocalWindow
from tests.recurrent.definition import U


def test_a_local_window_includes_its_edges():
    """Check weights of 0, for which the center is 4 of 8, and the window is 2 to 6."""
    local = LocalWindow(2)
    local.build((None, U))
    for weight in local.weights:
        weight.assign(np.zeros(weight.shape))
    near, _ = local(np.zeros((1, U), "float32"), np.ones((1, 8), bool))
    assert np.flatnonzero(near).tolist() == [2, 3, 4, 5, 6]
