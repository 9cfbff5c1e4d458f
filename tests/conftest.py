"""Fixtures of all tests. TensorFlow's logging is turned off before anything imports it.

Keras is imported inside of fixtures: the process that hands out the tests does not need it.
"""

import gc
import os
import pathlib
import random
import subprocess
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis
import numpy as np
import pytest

from tests import memory
from tests.warm_process import WarmProcess, can_fork

pytest_plugins = ["pytester", "tests.costs", "tests.small_runs"]

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The first example of a TensorFlow function is slow, which says nothing about the others.
hypothesis.settings.register_profile("keras_attention", deadline=None)
hypothesis.settings.load_profile("keras_attention")


def pytest_collection_finish():
    """Exclude imported objects from garbage collection, which each conversion to LiteRT calls.

    Also collect less often: graphs hold many objects, and a collection looks at all of them. That
    took 8 % of a run.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True, scope="module")
def seeds_of_backends():
    """TensorFlow forgets all its kernels where it is seeded: once for a module is enough.

    Keras draws with seeds of its own, which are drawn by Python.
    """
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def seed(seeds_of_backends):
    """Make a test draw the same numbers, whichever tests run before it."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True, scope="module")
def memory_given_back():
    """After each module, free the graphs that TensorFlow keeps, and return memory to the system."""
    import keras

    yield
    if keras.backend.backend() == "tensorflow":
        from tensorflow.python.framework import ops

        registered = ops.gradient_registry._registry  # a graph for each custom gradient
        for name in [name for name in registered if name.startswith("CustomGradient-")]:
            del registered[name]
    memory.give_back()


@pytest.fixture(autouse=True, scope="session")
def exports_in_warm_processes():
    """Run the scripts of exports in processes that have imported TensorFlow."""
    import keras

    if not can_fork() or keras.backend.backend() != "tensorflow":
        yield
        return
    from keras_attention.export import backend

    process = WarmProcess()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "subprocess", types.SimpleNamespace(run=process.run))
        yield
    process.close()


@pytest.fixture
def new_process(monkeypatch):
    """Exports check themselves in a process that is new, as they do for users."""
    from keras_attention.export import backend

    monkeypatch.setattr(backend, "subprocess", subprocess)


@pytest.fixture(autouse=True)
def outputs_that_become_arrays():
    """Turn PyTorch's gradients off, so that outputs become arrays (on: `tests/gradients.py`)."""
    import keras

    if keras.backend.backend() != "torch":
        yield
        return
    import torch

    with torch.no_grad():
        yield


@pytest.fixture(scope="session")
def data_root():
    """Return the folder of real data: $KERAS_ATTENTION_DATA, or ../shared/data."""
    named = os.environ.get("KERAS_ATTENTION_DATA")
    root = pathlib.Path(named) if named else ROOT.parent / "shared" / "data"
    if named and not root.is_dir():
        pytest.fail(f"KERAS_ATTENTION_DATA={named} is no folder.")
    if not root.is_dir():
        pytest.skip("no real data: set KERAS_ATTENTION_DATA to a folder that has it")
    return root
