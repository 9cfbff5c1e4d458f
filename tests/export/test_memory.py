import pytest

from keras_attention.export import ExportError, memory

MEMINFO = "MemTotal:       16000 kB\nMemAvailable:    4000 kB\n"


def test_the_tighter_limit_counts(tmp_path):
    proc, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    assert memory.available(proc, cgroup) is None
    proc.write_text(MEMINFO)
    assert memory.available(proc, cgroup) == 4000 * 1024
    cgroup.mkdir()
    (cgroup / "memory.current").write_text("1000\n")
    (cgroup / "memory.max").write_text("max\n")
    assert memory.available(proc, cgroup) == 4000 * 1024
    (cgroup / "memory.max").write_text("3000\n")
    assert memory.available(proc, cgroup) == 2000


def test_eight_times_the_weights_must_fit(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 8000)
    memory.check(1000)
    with pytest.raises(
        ExportError, match="1.0 kB of weights takes about 8.0 kB .* 8.0 kB are free"
    ):
        memory.check(1001)
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.check(10**15)
