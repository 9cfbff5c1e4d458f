"""Kernels: ways to compute the same attention, each equal to `dense` by test.

A kernel is a module with two functions: one of its own name, and `refuses(case)`, which says why it
cannot compute a `choice.Case`, or None. `stored` is not one to choose: it is what attends to keys
and values that lie in a cache.
"""

from keras_attention.attention.kernels import banded, chunked, dense, fused, slicing
from keras_attention.attention.kernels.stored import stored

NAMES = {module.__name__.rpartition(".")[2]: module for module in (dense, fused, banded, chunked)}


def module(name):
    """The kernel called `name`."""
    if name not in NAMES:
        raise ValueError(
            f"Unknown kernel {name!r}. Known: {', '.join(NAMES)}, or None to pick one."
        )
    return NAMES[name]


def run(name, *args, **kwargs):
    """Output and weights (None but for `dense` and `stored`) by the kernel called `name`."""
    compute = stored if name == "stored" else getattr(module(name), name)
    return compute(*args, **kwargs)


__all__ = ["NAMES", "banded", "chunked", "dense", "fused", "module", "run", "slicing", "stored"]
