"""Models that another backend saved give the same outputs on this one."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.backends import models
from tests.conftest import ROOT

# Without it JAX compiles for half a minute: each operation by itself.
UNOPTIMIZED = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
OTHERS = sorted({"jax", "tensorflow", "torch"} - {keras.backend.backend()})


@pytest.mark.parametrize("backend", OTHERS)
def test_loads(backend, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.models", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": backend, "XLA_FLAGS": UNOPTIMIZED},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name, make in models.MODELS.items():
        expected = np.load(tmp_path / f"{name}.npy")
        assert np.std(expected) > 1e-2
        loaded = keras.saving.load_model(tmp_path / f"{name}.keras")
        fresh = make()
        fresh.load_weights(tmp_path / f"{name}.weights.h5")
        for model in (loaded, fresh):
            actual = keras.ops.convert_to_numpy(model(models.inputs(name)))
            np.testing.assert_allclose(actual, expected, atol=1e-5, err_msg=f"{name}, {backend}")
