"""`benchmarks/gpu.py` runs whole, in tiny sizes on a CPU without TensorFlow."""

import os
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

BLOCKER = """
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec


def without_tensorflow(name, path=None, target=None):
    return None if name.split(".")[0] == "tensorflow" else find_spec(name, path, target)


PathFinder.find_spec = without_tensorflow
"""


def run(folder, *command):
    """Return the output of Python with these arguments, without TensorFlow."""
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
embedding = ka.models.TextEmbedding(padding="none")
model = ka.models.causal_language_model(30, embedding=embedding, **size)
model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
ids = np.ones((2, 8), "int32")
print(np.isfinite(model.train_on_batch(ids, ids)), model.predict(ids, verbose=0).shape)
print(ka.generation.generate(model, [[3, 4]], 3).shape)
"""
    output = run(tmp_path, "-c", program)
    assert output.split("\n")[:3] == ["no TensorFlow", "True (2, 8, 30)", "(1, 3)"]


@pytest.mark.slow
def test_a_dry_run_checks_and_times_every_stack(tmp_path):
    """Check all that a GPU runs. Only cuDNN's call is missing, and the output names it."""
    output = run(tmp_path, str(ROOT / "benchmarks" / "gpu.py"), "--dry-run")
    assert "WRONG" not in output
    missing = re.findall(r"^  (\S.*?) {2,}not run: (.*)$", output, re.MULTILINE)
    assert {name for name, _ in missing} == {"jax.nn, cuDNN"}, missing
    assert all("cuDNN" in reason for _, reason in missing) and len(missing) == 10
    lines = re.findall(r"^  (\S.*?) {2,}[\d.]+ +[\d.]+ +[\d.]+- *[\d.]+ ", output, re.MULTILINE)
    kernels = ["ours on JAX", "jax.nn, XLA", "Keras on JAX", "ours on PyTorch", "PyTorch SDPA"]
    models = ["ours on JAX", "KerasHub on JAX", "Hugging Face"]
    assert lines == kernels * 10 + models * 4
