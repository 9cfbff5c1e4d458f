"""Check the memory that a conversion needs, and the size of the resulting file."""

import math
import pathlib
import re

from keras_attention.export.checks.formatting import format_size
from keras_attention.export.errors import ExportError
from keras_attention.export.quantization import QUANTIZATIONS

_TIMES = 8  # a conversion needs about eight times the size of the weights (measured)
_MOST_BYTES = 2**31 - 2**24  # flatbuffers have 32-bit offsets, and the graph needs some space


def count_weight_bytes(model):
    """Return the size of the weights of a model in float32, in bytes."""
    return 4 * sum(math.prod(weight.shape) for weight in model.weights)


def check_file_size(model, quantization):
    """Raise an ExportError if the weights do not fit into a LiteRT file, which is at most 2 GB.

    `model` is a `keras.Model`, and `quantization` a `Quantization`, which says how weights are
    stored.
    """
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
        f"{format_size(needed)}. Use {' or '.join([*ways, 'to_saved_model'])}."
    )


def check_free_memory(model):
    """Raise an ExportError if the conversion of a model needs more memory than is available."""
    weights, free = count_weight_bytes(model), find_free_memory()
    if free is not None and _TIMES * weights > free:
        raise ExportError(
            f"Converting {format_size(weights)} of weights takes about "
            f"{format_size(_TIMES * weights)} of memory, and {format_size(free)} are free. Close "
            "other programs, or convert on a larger machine."
        )


def find_free_memory(proc="/proc/meminfo", cgroup="/sys/fs/cgroup"):
    """Return the memory in bytes that this process can still use, or None if it is unknown.

    `proc` and `cgroup` are the path of a file and of a folder of Linux that contain this number.
    """
    path, limits = pathlib.Path(proc), []
    if path.is_file():
        pattern = r"^MemAvailable:\s*(\d+) kB"
        limits += [int(n) * 1024 for n in re.findall(pattern, path.read_text(), re.MULTILINE)]
    most, used = (pathlib.Path(cgroup) / name for name in ("memory.max", "memory.current"))
    if most.is_file() and used.is_file() and most.read_text().strip() != "max":
        limits.append(int(most.read_text()) - int(used.read_text()))
    return min(limits, default=None)
