"""Kernels: ways to compute the same attention, each equal to `dense` by test."""

from keras_attention.attention.kernels.dense import dense

NAMES = {"dense": dense}


def get(name):
    """The kernel called `name`; None picks one, which today is always `dense`."""
    if name is None:
        return dense
    if name not in NAMES:
        raise ValueError(
            f"Unknown kernel {name!r}. Known: {', '.join(NAMES)}, or None to pick one."
        )
    return NAMES[name]


__all__ = ["NAMES", "dense", "get"]
