"""A guard against conversions that the machine would kill half-way."""

import pathlib
import re

from keras_attention.export import text
from keras_attention.export.errors import ExportError

_TIMES = 8  # measured: converting a model takes about eight times the bytes of its weights


def check(weights_bytes):
    """Raises ExportError when a conversion would need more memory than is free."""
    free = available()
    if free is not None and _TIMES * weights_bytes > free:
        raise ExportError(
            f"Converting {text.size(weights_bytes)} of weights takes about "
            f"{text.size(_TIMES * weights_bytes)} of memory, and {text.size(free)} are free. "
            "Close other programs, or convert on a larger machine."
        )


def available(proc="/proc/meminfo", cgroup="/sys/fs/cgroup"):
    """Bytes of memory free for this process, or None where the system does not tell."""
    limits = [_meminfo(pathlib.Path(proc)), _cgroup(pathlib.Path(cgroup))]
    return min((limit for limit in limits if limit is not None), default=None)


def _meminfo(path):
    if not path.is_file():
        return None
    found = re.search(r"^MemAvailable:\s*(\d+) kB", path.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _cgroup(folder):
    most, used = folder / "memory.max", folder / "memory.current"
    if not (most.is_file() and used.is_file()) or most.read_text().strip() == "max":
        return None
    return int(most.read_text()) - int(used.read_text())
