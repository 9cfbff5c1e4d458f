import os

import keras
import pytest

import keras_attention as ka
from keras_attention.training import speed

CPUINFO = """processor\t: 0
model name\t: Example 3000
flags\t\t: fpu avx2 {flags}

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


def read(monkeypatch, tmp_path, flags="", lacks_onednn=False, machine="x86_64"):
    (tmp_path / "cpuinfo").write_text(CPUINFO.format(flags=flags))
    monkeypatch.setattr(speed, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(speed, "tensorflow_lacks_onednn", lambda: lacks_onednn)
    monkeypatch.setattr(speed.platform, "machine", lambda: machine)
    return ka.training.speed_report()


@pytest.mark.tensorflow
def test_the_report_names_processor_threads_and_onednn(monkeypatch, tmp_path):
    report = read(monkeypatch, tmp_path, "avx_vnni")
    assert report == ka.training.SpeedReport(
        "Example 3000", ("avx2", "avx_vnni"), "tensorflow", True, os.cpu_count(), ()
    )
    lines = str(report).splitlines()
    assert lines[:3] == [
        "processor: Example 3000",
        "instructions: avx2, avx_vnni",
        "backend: tensorflow",
    ]
    assert "oneDNN: on" in lines and len(lines) == 6


@pytest.mark.tensorflow
def test_the_report_advises_onednn_only_where_it_can_be_had(monkeypatch, tmp_path):
    advice = read(monkeypatch, tmp_path, "avx_vnni", lacks_onednn=True).advice
    assert len(advice) == 1 and "TF_ENABLE_ONEDNN_OPTS=1" in advice[0]
    other = read(monkeypatch, tmp_path, "avx_vnni", lacks_onednn=True, machine="ppc64le")
    assert other.advice == ()


@pytest.mark.parametrize("flags", ["amx_bf16", "avx512_bf16"])
def test_the_report_advises_to_measure_bfloat16(flags, monkeypatch, tmp_path):
    report = read(monkeypatch, tmp_path, flags)
    assert "fastest_dtype_policy" in report.advice[0] and f"- {report.advice[0]}" in str(report)


@pytest.mark.parametrize("flags, count", [("", 1), ("avx512_vnni", 0), ("avx_vnni", 0)])
def test_the_report_says_where_int8_files_gain_little(flags, count, monkeypatch, tmp_path):
    advice = read(monkeypatch, tmp_path, flags).advice
    assert sum("int8_weights" in sentence for sentence in advice) == count


def test_other_systems_name_the_processor(monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "CPUINFO", tmp_path / "missing")
    monkeypatch.setattr(speed.platform, "processor", lambda: "arm")
    report = ka.training.speed_report()
    assert report.processor == "arm" and "instructions" not in str(report)


def test_other_backends_have_no_onednn(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    report = read(monkeypatch, tmp_path)
    assert report.onednn is report.threads is None and "oneDNN" not in str(report)
