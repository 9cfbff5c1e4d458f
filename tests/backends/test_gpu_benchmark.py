"""`benchmarks/gpu.py` runs whole, in tiny sizes on a CPU, where there is no TensorFlow."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
NEEDED = ("jax", "torch", "transformers")

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"needs {', '.join(NEEDED)}",
)

BLOCKER = """
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec


def without_tensorflow(name, path=None, target=None):
    return None if name.split(".")[0] == "tensorflow" else find_spec(name, path, target)


PathFinder.find_spec = without_tensorflow
"""


def run(folder, *command):
    """The output of Python with these arguments, where TensorFlow is not installed."""
    (folder / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(folder), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=env, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_package_runs_on_jax_without_tensorflow(tmp_path):
    program = """
import keras
import numpy as np
import keras_attention as ka

try:
    import tensorflow
except ModuleNotFoundError:
    print("no TensorFlow")
size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=16)
model = ka.models.causal_language_model(30, padding="none", **size)
model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
ids = np.ones((2, 8), "int32")
print(np.isfinite(model.train_on_batch(ids, ids)), model.predict(ids, verbose=0).shape)
print(ka.generation.generate(model, [[3, 4]], 3).shape)
"""
    found = run(tmp_path, "-c", program)
    assert found.split("\n")[:3] == ["no TensorFlow", "True (2, 8, 30)", "(1, 3)"]


@pytest.mark.slow
def test_a_dry_run_checks_and_times_every_stack(tmp_path):
    """All that a GPU runs, but cuDNN's call, which says that there is none."""
    found = run(tmp_path, str(ROOT / "benchmarks" / "gpu.py"), "--dry-run")
    assert "WRONG" not in found
    missing = re.findall(r"^  (\S.*?) {2,}not run: (.*)$", found, re.MULTILINE)
    assert {name for name, _ in missing} == {"jax.nn, cuDNN"}, missing
    assert all("cuDNN" in reason for _, reason in missing) and len(missing) == 8
    lines = re.findall(r"^  (\S.*?) {2,}[\d.]+ +[\d.]+ +[\d.]+- *[\d.]+ ", found, re.MULTILINE)
    kernels = ["ours on JAX", "jax.nn, XLA", "ours on PyTorch", "PyTorch SDPA", "Hugging Face"]
    assert lines == kernels * 8 + ["ours on JAX", "Hugging Face"] * 2


@pytest.fixture
def gpu_kernels(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return __import__("gpu_kernels")


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="one backend is enough")
def test_the_definition_tells_wrong_attention(gpu_kernels):
    """A peer that forgets the window, or the padding, is not timed."""
    cases = {case["pattern"]: case for _, case in gpu_kernels.cases(True) if case["backward"]}
    stack = gpu_kernels.JaxNNByXLA(True)
    for pattern in ("window", "alibi"):
        assert stack.check(cases[pattern]) < gpu_kernels.TOLERANCE
        plain = gpu_kernels.JaxNNByXLA(True)
        attend = plain.attention
        plain.attention = lambda case, length: attend({**case, "pattern": "causal"}, length)  # noqa: B023
        assert plain.check(cases[pattern]) > gpu_kernels.TOLERANCE
    assert np.isclose(gpu_kernels.slopes(8)[0], 0.5)
