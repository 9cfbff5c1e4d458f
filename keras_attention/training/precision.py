"""The fastest dtype policy of a machine, measured."""

import statistics
import time

import numpy as np
from keras import ops

LEAST_GAIN = 1.5  # of matrix products, as nothing else gets faster
SIZE = 1024


def fastest_dtype_policy():
    """`"mixed_bfloat16"` where this machine multiplies bfloat16 faster, or else `"float32"`.

    GPUs, TPUs and processors with AMX do; on others bfloat16 is several times slower. Their names
    do not tell (TensorFlow's XLA, for one, does not use AMX), so both are timed, for a fraction of
    a second, on the backend and the device in use.

    Returns:
        The name of a Keras dtype policy. Weights stay float32 under both.

    Example:

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
    gain = _time_product("float32") / _time_product("bfloat16")
    return "mixed_bfloat16" if gain >= LEAST_GAIN else "float32"


def _time_product(dtype):
    """Seconds of a matrix product, the median of five."""
    x = ops.cast(np.ones((SIZE, SIZE), "float32"), dtype)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        product = ops.matmul(x, x)
        ops.convert_to_numpy(ops.cast(product[0, 0], "float32"))  # wait for it
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])
