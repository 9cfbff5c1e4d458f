"""The fastest dtype policy of a machine, measured."""

import random
import statistics
import time

import keras
import numpy as np

from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import EncoderBlock, FeedForward

LEAST_GAIN = 1.15  # of a step: less may be due to other processes
WARM_UP, ROUNDS = 3, 9
BATCH, LENGTH, WIDTH = 4, 128, 768  # with less, other operations matter as much as matrix products


def fastest_dtype_policy():
    """Return `"mixed_bfloat16"` if this machine trains a block faster in it, else `"float32"`.

    GPUs, TPUs and processors with AMX or AVX512-BF16 do. On others bfloat16 is several times
    slower. The name of a processor does not tell: TensorFlow's XLA, for example, does not use AMX.
    So training steps of a block of BERT-base's width are timed in both, in turn, for a few seconds,
    on the backend and the device in use. The median of the ratios decides, and bfloat16 must be 15
    % faster.

    Returns:
        The name of a Keras dtype policy. Weights stay float32 in both.

    ```python
    import keras
    import keras_attention as ka

    policy = ka.training.fastest_dtype_policy()
    assert policy in ("float32", "mixed_bfloat16")
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 8, dtype=policy),
        ka.blocks.FeedForward(32, dtype=policy),
        dtype=policy,
    )
    # or, for every layer made from now on: keras.config.set_dtype_policy(policy)
    ```
    """
    state = random.getstate()  # Keras draws the seeds of later layers from it
    try:
        exact, rounded = _make_step("float32"), _make_step("mixed_bfloat16")
    finally:
        random.setstate(state)
    if max(_compare(exact, rounded, WARM_UP)) < 0.5:  # several times slower: no more is needed
        return "float32"
    gains = _compare(exact, rounded, ROUNDS)
    return "mixed_bfloat16" if statistics.median(gains) >= LEAST_GAIN else "float32"


def _compare(exact, rounded, rounds):
    """Return how many times as fast the second step is as the first, for each round."""
    return [_time(exact) / _time(rounded) for _ in range(rounds)]


def _make_step(policy):
    """Make a function that trains a block once. It has run once, and is compiled."""
    block = EncoderBlock(
        MultiHeadAttention(12, WIDTH // 12, dtype=policy, name="attention"),
        FeedForward(4 * WIDTH, dtype=policy, name="feed_forward"),
        dtype=policy,
        name="block",
    )
    inputs = keras.Input((LENGTH, WIDTH), dtype="float32", name="x")
    model = keras.Model(inputs, block(inputs), name=f"timed_in_{policy}")
    model.compile(keras.optimizers.SGD(1e-3, name="sgd"), "mean_squared_error")
    x = np.random.default_rng(0).standard_normal((BATCH, LENGTH, WIDTH), dtype="float32")

    def step():
        return float(model.train_on_batch(x, x))

    step()
    return step


def _time(step):
    """Return the seconds of a step."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start
