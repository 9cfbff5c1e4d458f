"""`speed_report`: says what decides how fast models run on this machine, and what to change."""

import dataclasses
import os
import pathlib
import platform

import keras

from keras_attention.core.onednn import tensorflow_lacks_onednn

CPUINFO = pathlib.Path("/proc/cpuinfo")
BFLOAT16 = ("amx_bf16", "avx512_bf16")  # instructions that multiply bfloat16 quickly
VNNI = ("avx_vnni", "avx512_vnni")  # instructions that multiply 8-bit integers quickly
# Instructions that decide the speed of matrix products, by their names in Linux.
INSTRUCTIONS = ("avx2", "avx512f", *VNNI, *reversed(BFLOAT16))
ONEDNN_ADVICE = (
    "Set TF_ENABLE_ONEDNN_OPTS=1 before you import TensorFlow: encoders and training took 0.6 to "
    "0.9 of the time, but decoding may slow down."
)
BFLOAT16_ADVICE = (
    "This processor multiplies bfloat16 quickly: ka.training.fastest_dtype_policy() measures "
    "whether training in mixed_bfloat16 is faster."
)
INT8_ADVICE = (
    "This processor multiplies 8-bit integers slowly: a LiteRT file with int8_weights is smaller, "
    "but hardly faster than float32."
)


@dataclasses.dataclass(frozen=True)
class SpeedReport:
    """The result of `speed_report`. `str` and `print` show one line for each fact and advice.

    Attributes:
        processor: str, name of the processor.
        instructions: tuple of str, those of `avx2`, `avx512f`, `avx_vnni`, `avx512_vnni`,
            `avx512_bf16` and `amx_bf16` that the processor has. Empty if the system is not Linux.
        backend: str, name of the Keras backend.
        onednn: bool, whether TensorFlow computes with oneDNN. None on other backends.
        threads: int, number of threads of an operation of TensorFlow. None on other backends.
        advice: tuple of str, what to change. Empty if nothing is known.
    """

    processor: str
    instructions: tuple
    backend: str
    onednn: bool | None
    threads: int | None
    advice: tuple

    def __str__(self):
        lines = [f"processor: {self.processor}"]
        if self.instructions:
            lines.append(f"instructions: {', '.join(self.instructions)}")
        lines.append(f"backend: {self.backend}")
        if self.onednn is not None:
            lines.append(f"oneDNN: {'on' if self.onednn else 'off'}")
            lines.append(f"threads: {self.threads}")
        lines.append("XLA: fit, evaluate and predict compile a model if all its layers allow it")
        return "\n".join([*lines, *(f"- {sentence}" for sentence in self.advice)])


def speed_report():
    """Return what decides how fast models run on this machine, and what to change.

    It measures nothing and changes nothing.

    Returns:
        A `SpeedReport`, to print. If TensorFlow computes without oneDNN, Intel's library of fast
        kernels, it advises to set the environment variable `TF_ENABLE_ONEDNN_OPTS=1`. Set it before
        you import TensorFlow, because TensorFlow reads it only then.

    ```python
    import keras_attention as ka

    report = ka.training.speed_report()
    print(report)
    assert report.processor in str(report)
    ```
    """
    backend = keras.backend.backend()
    processor, instructions = _read_processor()
    onednn = threads = None
    advice = []
    if backend == "tensorflow":
        import tensorflow as tf

        onednn = not tensorflow_lacks_onednn()
        threads = tf.config.threading.get_intra_op_parallelism_threads() or os.cpu_count()
        if not onednn and platform.machine() in ("x86_64", "AMD64"):
            advice.append(ONEDNN_ADVICE)
    if instructions.intersection(BFLOAT16):
        advice.append(BFLOAT16_ADVICE)
    if "avx2" in instructions and not instructions.intersection(VNNI):
        advice.append(INT8_ADVICE)
    named = tuple(name for name in INSTRUCTIONS if name in instructions)
    return SpeedReport(processor, named, backend, onednn, threads, tuple(advice))


def _read_processor():
    """Return (name, set of its instructions) of the processor. Only Linux lists instructions."""
    entries = {}
    for line in CPUINFO.read_text().splitlines() if CPUINFO.exists() else ():
        key, _, value = line.partition(":")
        entries.setdefault(key.strip(), value.strip())
    name = entries.get("model name") or platform.processor() or platform.machine()
    return name, set(entries.get("flags", "").split())
