"""The checks of `benchmarks/gpu.py` notice a peer that computes other attention."""

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture
def gpu_kernels(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return __import__("gpu_kernels")


def test_the_definition_tells_wrong_attention(gpu_kernels):
    """Check that a peer without the window or the padding is not timed."""
    cases = {case["pattern"]: case for _, case in gpu_kernels.cases(True) if case["backward"]}
    stack = gpu_kernels.JaxNNByXLA(True)
    for pattern in ("window", "alibi"):
        assert stack.check(cases[pattern]) < gpu_kernels.tolerance(cases[pattern])
        plain = gpu_kernels.JaxNNByXLA(True)
        attend = plain.attention
        plain.attention = lambda case, length: attend({**case, "pattern": "causal"}, length)  # noqa: B023
        assert plain.check(cases[pattern]) > gpu_kernels.tolerance(cases[pattern])
    assert np.isclose(gpu_kernels.slopes(8)[0], 0.5)
