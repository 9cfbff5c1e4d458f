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
    path, limits = pathlib.Path(proc), []
    if path.is_file():
        pattern = r"^MemAvailable:\s*(\d+) kB"
        limits += [int(n) * 1024 for n in re.findall(pattern, path.read_text(), re.MULTILINE)]
    most, used = (pathlib.Path(cgroup) / name for name in ("memory.max", "memory.current"))
    if most.is_file() and used.is_file() and most.read_text().strip() != "max":
        limits.append(int(most.read_text()) - int(used.read_text()))
    return min(limits, default=None)
