import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.training import precision


@pytest.mark.parametrize(
    "seconds, policy",
    [
        ({"float32": 3.0, "bfloat16": 1.0}, "mixed_bfloat16"),
        ({"float32": 1.2, "bfloat16": 1.0}, "float32"),  # what is no product would eat it up
        ({"float32": 1.0, "bfloat16": 8.0}, "float32"),
    ],
)
def test_takes_bfloat16_where_it_pays(seconds, policy, monkeypatch):
    monkeypatch.setattr(precision, "_time_product", seconds.get)
    assert ka.training.fastest_dtype_policy() == policy


def test_what_it_names_is_a_policy_that_blocks_compute_with():
    policy = ka.training.fastest_dtype_policy()
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4, dtype=policy),
        ka.blocks.FeedForward(16, dtype=policy),
        dtype=policy,
    )
    output = block(np.ones((1, 5, 8), "float32"))
    assert output.dtype == keras.DTypePolicy(policy).compute_dtype
    assert all(weight.dtype == "float32" for weight in block.weights)
