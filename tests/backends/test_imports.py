"""On another backend, the package is imported without TensorFlow."""

import pytest

from tests.test_imports import run


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_import_leaves_tensorflow_out(backend):
    run(
        "import sys, keras_attention; assert 'tensorflow' not in sys.modules",
        KERAS_BACKEND=backend,
    )
