"""Kernels: ways to compute the same attention, each equal to `dense` by test.

A kernel is a module with a function of its own name, `kernel(query, key, value, equation,
visibility)`, and all but `dense` have two more of the `lengths` (T, S), ints or None where they are
not known: `refuses(lengths, equation, visibility)` says why it cannot compute an attention, or
None, and `pays(lengths, visibility)` why it is the one to take, or None.
"""

from keras_attention.attention.kernels import banded, chunked, dense, fused, ring
from keras_attention.attention.kernels.select import CACHED, NAMES, Choice, bind, choose, get_kernel

__all__ = [
    "CACHED",
    "NAMES",
    "Choice",
    "banded",
    "bind",
    "choose",
    "chunked",
    "dense",
    "fused",
    "get_kernel",
    "ring",
]
