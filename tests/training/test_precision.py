import itertools
import random

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.training import precision


@pytest.mark.parametrize(
    "bfloat16, policy",
    [
        ([0.6] * 12, "mixed_bfloat16"),
        ([9.0, 0.6, 3.0, *[0.6, 0.6, 3.0, 0.6, 0.7, 2.0, 0.6, 0.6, 0.6]], "mixed_bfloat16"),
        (
            [0.6] * 3 + [1.5, 0.3, 1.4, 1.6, 0.3, 1.4, 1.3, 0.3, 1.2],
            "float32",
        ),  # other processes ran
        ([0.3] * 3 + [0.95] * 9, "float32"),  # warm-up steps do not count, and the result is close
        ([8.0, 2.5, 7.0], "float32"),  # and it is not measured again
    ],
)
def test_the_median_of_alternating_steps_decides(bfloat16, policy, monkeypatch):
    order, seconds = [], {"float32": itertools.repeat(1.0), "mixed_bfloat16": iter(bfloat16)}
    monkeypatch.setattr(precision, "_make_step", lambda name: name)

    def time(name):
        order.append(name)
        return next(seconds[name])

    monkeypatch.setattr(precision, "_time", time)
    assert ka.training.fastest_dtype_policy() == policy
    assert order == ["float32", "mixed_bfloat16"] * len(bfloat16)


@pytest.mark.slow
def test_blocks_compute_in_the_fastest_dtype_policy():
    state = random.getstate()
    policy = ka.training.fastest_dtype_policy()
    assert random.getstate() == state  # later layers have the same initial weights
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4, dtype=policy),
        ka.blocks.FeedForward(16, dtype=policy),
        dtype=policy,
    )
    output = block(np.ones((1, 5, 8), "float32"))
    assert output.dtype == keras.DTypePolicy(policy).compute_dtype
    assert all(weight.dtype == "float32" for weight in block.weights)


def test_a_step_trains_under_the_policy():
    before = keras.config.dtype_policy()
    step = precision._make_step("mixed_bfloat16")
    assert step() > step() > 0
    assert keras.config.dtype_policy() == before
