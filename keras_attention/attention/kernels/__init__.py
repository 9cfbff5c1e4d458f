"""Kernels: different ways to compute the same attention. Tests compare each with `dense`.

A kernel is a module with a function of the same name, `kernel(query, key, value, equation,
visibility)`. All kernels but `dense` have two more functions, where `lengths` is (T, S), ints or
None if dynamic:

- `find_obstacle(lengths, equation, visibility)` returns the reason why the kernel cannot compute a
  call of attention, or None if it can.
- `find_advantage(lengths, visibility)` returns the reason why the kernel is the best choice, or
  None if it is not.
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
