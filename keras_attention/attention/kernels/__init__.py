"""Kernels: ways to compute the same attention, each equal to `dense` by test.

A kernel is a module with two functions: one of its own name, and `refuses(case)`, which says why it
cannot compute a `Case`, or None.
"""

from keras_attention.attention.kernels import banded, chunked, dense, fused, ring
from keras_attention.attention.kernels.bias_and_mask import BiasAndMask
from keras_attention.attention.kernels.select import (
    NAMES,
    Case,
    Choice,
    choose,
    explain,
    get_kernel,
    run_kernel,
)

__all__ = [
    "NAMES",
    "BiasAndMask",
    "Case",
    "Choice",
    "banded",
    "choose",
    "chunked",
    "dense",
    "explain",
    "fused",
    "get_kernel",
    "ring",
    "run_kernel",
]
