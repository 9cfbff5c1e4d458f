"""Fixtures of all tests. TensorFlow is told to be quiet before anything imports it.

Keras is imported inside of fixtures: the process that only gives tests to others needs none.
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
    """The garbage collector passes over what imports left: each conversion to LiteRT calls it.

    It also runs more seldom: graphs hold many objects, and looking through them took 8 % of a run.
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
    """Every test draws the same numbers, alone or in company."""
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
    """The scripts of exports begin with TensorFlow imported, but for tests of `new_process`."""
    import keras

    if not can_fork() or keras.backend.backend() != "tensorflow":
        yield
        return
    from keras_attention.export import convert, saved_model

    process = WarmProcess()
    with pytest.MonkeyPatch.context() as patch:
        for module in (convert, saved_model):
            patch.setattr(module, "subprocess", types.SimpleNamespace(run=process.run))
        yield
    process.close()


@pytest.fixture
def new_process(monkeypatch):
    """Exports check themselves in a process that is new, as they do for users."""
    from keras_attention.export import convert, saved_model

    for module in (convert, saved_model):
        monkeypatch.setattr(module, "subprocess", subprocess)


@pytest.fixture(autouse=True)
def outputs_that_become_arrays():
    """PyTorch makes no array of what has a gradient: only `tests/gradients.py` asks for one."""
    import keras

    if keras.backend.backend() != "torch":
        yield
        return
    import torch

    with torch.no_grad():
        yield


@pytest.fixture(scope="session")
def data_root():
    """The folder of real data: $KERAS_ATTENTION_DATA, or ../shared/data seen from the checkout."""
    named = os.environ.get("KERAS_ATTENTION_DATA")
    root = pathlib.Path(named) if named else ROOT.parent / "shared" / "data"
    if named and not root.is_dir():
        pytest.fail(f"KERAS_ATTENTION_DATA={named} is no folder.")
    if not root.is_dir():
        pytest.skip("no real data: set KERAS_ATTENTION_DATA to a folder that has it")
    return root
