"""`fastest_dtype_policy`: measures which dtype policy trains fastest on this machine."""

import random
import statistics
import time

import keras
import numpy as np

from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import EncoderBlock, FeedForward

LEAST_GAIN = 1.15  # required speedup of a step: a smaller one may be noise from other processes
WARM_UP, ROUNDS = 3, 9
BATCH, LENGTH, WIDTH = 4, 128, 768  # with less, other operations matter as much as matrix products


def fastest_dtype_policy():
    """Return the dtype policy that trains faster on this machine.

    GPUs, TPUs and CPUs with AMX or AVX512-BF16 are faster in bfloat16. Other CPUs are several times
    slower. The backend matters, too. So this function runs training steps of a block as wide as
    BERT-base under both policies for a few seconds. It returns `"mixed_bfloat16"` only if the
    median speedup is at least 15 %. `ka.training.speed_report()` names what else decides the speed.

    Returns:
        `"mixed_bfloat16"` or `"float32"`, the name of a Keras dtype policy. Weights stay float32 in
        both.

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
    # or, for all layers that are created later: keras.config.set_dtype_policy(policy)
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
    """Return how many times faster the step `rounded` is than `exact`, a float for each round."""
    return [_time(exact) / _time(rounded) for _ in range(rounds)]


def _make_step(policy):
    """Return a function that runs one training step of a block under `policy`, already compiled."""
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
    """Return how many seconds a step takes."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start
