"""The room that a model takes: in memory while it is converted, and in its file."""

import math
import pathlib
import re

from keras_attention.export.checks.formatting import format_size
from keras_attention.export.errors import ExportError
from keras_attention.export.quantization import QUANTIZATIONS

_TIMES = 8  # measured: converting a model takes about eight times the bytes of its weights
_MOST_BYTES = 2**31 - 2**24  # of a flatbuffer, whose offsets have 32 bits; a little for the graph


def count_weight_bytes(model):
    """Bytes of the weights of `model` as float32."""
    return 4 * sum(math.prod(weight.shape) for weight in model.weights)


def check_file_size(model, quantization):
    """Raises ExportError where the weights do not fit into a LiteRT file, of 2 GB at most."""
    whole = count_weight_bytes(model)
    needed = quantization.peak_ratio * whole
    if needed <= _MOST_BYTES:
        return
    sizes = {one.name: one.peak_ratio * whole for one in QUANTIZATIONS.values()}
    ways = [
        f'quantization="{name}" ({format_size(size)})'
        for name, size in sizes.items()
        if size <= _MOST_BYTES
    ]
    raise ExportError(
        f"A LiteRT file holds at most 2 GB, and the weights of {model.name} take "
        f"{format_size(needed)}: use {' or '.join([*ways, 'to_saved_model'])}."
    )


def check_free_memory(model):
    """Raises ExportError where the conversion of `model` needs more memory than is free.

    The system would end the process half-way.
    """
    weights, free = count_weight_bytes(model), find_free_memory()
    if free is not None and _TIMES * weights > free:
        raise ExportError(
            f"Converting {format_size(weights)} of weights takes about "
            f"{format_size(_TIMES * weights)} of memory, and "
            f"{format_size(free)} are free. Close other programs, or convert on a "
            "larger machine."
        )


def find_free_memory(proc="/proc/meminfo", cgroup="/sys/fs/cgroup"):
    """Bytes of memory free for this process, or None where the system does not tell."""
    limits = [_read_meminfo(pathlib.Path(proc)), _read_cgroup(pathlib.Path(cgroup))]
    return min((limit for limit in limits if limit is not None), default=None)


def _read_meminfo(path):
    if not path.is_file():
        return None
    found = re.search(r"^MemAvailable:\s*(\d+) kB", path.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _read_cgroup(folder):
    most, used = folder / "memory.max", folder / "memory.current"
    if not (most.is_file() and used.is_file()) or most.read_text().strip() == "max":
        return None
    return int(most.read_text()) - int(used.read_text())
