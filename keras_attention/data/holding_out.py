"""Where a data set has no development part: some of the training part, never the test part."""

import numpy as np


def held_out(size, fraction, seed):
    """Splits range(size) at random: (indices kept, indices held out), both in ascending order.

    The same seed gives the same split. At least one example is held out, unless `fraction` is 0.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"dev_fraction={fraction}: expected a number from 0 to below 1.")
    if fraction and size < 2:
        raise ValueError(
            f"The training part has {size} example, too few to hold some out as a development "
            "part. Give a development part, or dev_fraction=0 for none."
        )
    number = max(1, round(size * fraction)) if fraction else 0
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[number:]), np.sort(order[:number])
