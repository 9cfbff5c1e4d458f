"""A training on Shakespeare as good as nanoGPT's recipe for a CPU."""

import pathlib
import runpy
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
REPORTED = 1.88  # https://github.com/karpathy/nanoGPT, "I only have a macbook"


@pytest.mark.sweep
@pytest.mark.tensorflow
def test_reaches_the_loss_of_nanogpt(data_root, monkeypatch):
    monkeypatch.setenv("KERAS_ATTENTION_DATA", str(data_root))
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    script = runpy.run_path(BENCHMARKS / "shakespeare.py")
    ids, size = script["text"]()
    split = int(0.9 * len(ids))
    iterations = script["ITERATIONS"]["keras_attention"]
    run, score, _ = script["with_keras"](ids[:split], size, iterations)
    run(iterations)
    assert score(*script["in_order"](ids[split:])) <= REPORTED
