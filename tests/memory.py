"""Returns memory that tests no longer need to the operating system."""

import ctypes
import gc
import sys

GROWTH = 64e6  # bytes: collecting garbage takes too long to do it after every module

_before = 0


def give_back():
    """Collect garbage and return free memory, if the process grew since the last time."""
    global _before
    if sys.platform != "linux" or read_size() < _before + GROWTH:
        return
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
    if trim is not None:
        trim(0)
    _before = read_size()


def read_size():
    """Return how many bytes of this process are in memory (Linux only)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
