import types

import pytest

from keras_attention.export import ExportError, memory

MEMINFO = "MemTotal:       16000 kB\nMemAvailable:    4000 kB\n"


def test_the_tighter_limit_counts(tmp_path):
    proc, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    assert memory.find_free_memory(proc, cgroup) is None
    proc.write_text(MEMINFO)
    assert memory.find_free_memory(proc, cgroup) == 4000 * 1024
    cgroup.mkdir()
    (cgroup / "memory.current").write_text("1000\n")
    (cgroup / "memory.max").write_text("max\n")
    assert memory.find_free_memory(proc, cgroup) == 4000 * 1024
    (cgroup / "memory.max").write_text("3000\n")
    assert memory.find_free_memory(proc, cgroup) == 2000


def model_of(size):
    """Return a stand-in for a model with so many bytes of weights."""
    return types.SimpleNamespace(weights=[types.SimpleNamespace(shape=(size // 4,))])


def test_eight_times_the_weights_must_fit(monkeypatch):
    monkeypatch.setattr(memory, "find_free_memory", lambda: 8000)
    memory.check_free_memory(model_of(1000))
    with pytest.raises(
        ExportError, match="1.0 kB of weights takes about 8.0 kB .* 8.0 kB are free"
    ):
        memory.check_free_memory(model_of(1004))
    monkeypatch.setattr(memory, "find_free_memory", lambda: None)
    memory.check_free_memory(model_of(10**15))
