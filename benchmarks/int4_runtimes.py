"""The time and size of int4 weights compared with int8 weights, in every runtime.

    python benchmarks/int4_runtimes.py [--models encoder decoder ...] [--rounds 15]

Files with fixed shapes, batch 1, 32 tokens: an encoder of MiniLM's size, a vision transformer
(ViT-S/16), one step of the presets shakespeare and multi30k-de-en, and of a decoder of GPT-2's
size. All but the presets have random weights. The runtimes are the interpreter and `CompiledModel`
of ai-edge-litert on the CPU, its GPU delegate, where SwiftShader may be the GPU, and LiteRT.js in
Chromium. Int4 has blocks of 32, or a scale for each row. The GPU delegate runs only rows, because
blocks crash it. The files take turns. Their largest difference from the int8 file, relative to the
largest output, is printed as well. Needs the extra export, and for the browser Chromium and npm.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np

import keras_attention as ka
from keras_attention.export.checks import compiled_process, gpu_delegate
from keras_attention.export.graphs import flatbuffer

ROOT = pathlib.Path(__file__).parents[1]
LENGTH, ROUNDS = 32, 15
KINDS = {  # name: (quantization, compatible_with)
    "int8": ("int8_weights", "web"),
    "int4 in blocks": ("int4_weights", "interpreter"),
    "int4 in rows": ("int4_weights", "web"),
}


def make_encoder(path, **settings):
    keras.utils.set_random_seed(0)
    model = ka.models.text_classifier(
        30522, 384, num_layers=6, num_heads=12, hidden_dim=384, intermediate_dim=1536
    )
    ka.export.to_litert(model, path, batch_size=1, sequence_length=LENGTH, **settings)


def make_vision(path, **settings):
    keras.utils.set_random_seed(0)
    size = ka.models.sizes("vision_transformer")["ViT-S/16"]
    model = ka.models.vision_transformer((224, 224), 1000, **size)
    ka.export.to_litert(model, path, batch_size=1, **settings)


def make_decoder(path, **settings):
    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        50257, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072
    )
    generate = ka.export.Generation("greedy", 2 * LENGTH, 1)
    sizes = {"batch_size": 1, "sequence_length": LENGTH}
    ka.export.to_litert(model, path, generate=generate, **sizes, **settings)


def make_preset(name):
    def make(path, **settings):
        task = ka.tasks.from_preset(ROOT / "saved_models" / name)
        task.make_examples = lambda: None  # the export then refuses no file
        task.export(path, batch_size=1, sequence_length=LENGTH, **settings)

    return make


MODELS = {  # name: (function that writes the file, signature)
    "encoder": (make_encoder, "serving_default"),
    "vision": (make_vision, "serving_default"),
    "shakespeare": (make_preset("shakespeare"), "step"),
    "multi30k-de-en": (make_preset("multi30k-de-en"), "step"),
    "decoder": (make_decoder, "step"),
}


def make_inputs(path, signature):
    """Return small numbers as inputs of a signature, which are also token ids."""
    random = np.random.default_rng(0)
    signatures = {each.name: each for each in flatbuffer.read_graph(path).signatures}
    inputs = {}
    for tensor in signatures[signature].inputs:
        if tensor.name == "index":
            inputs[tensor.name] = np.array(1, "int32")
        elif np.dtype(tensor.dtype).kind == "f":
            inputs[tensor.name] = random.normal(size=tensor.shape).astype(tensor.dtype)
        else:
            high = 2 if tensor.dtype in ("bool", "uint8", "int8") else 60
            inputs[tensor.name] = random.integers(1, high, tensor.shape).astype(tensor.dtype)
    return inputs


def open_interpreter(path, signature, inputs):
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner(signature)
    return lambda: run(**inputs)


def open_compiled(path, signature, inputs, on_gpu=False):
    from ai_edge_litert.compiled_model import (
        CompiledModel,
        CpuOptions,
        GpuOptions,
        HardwareAccelerator,
        Options,
    )

    kind = HardwareAccelerator
    options = Options(
        hardware_accelerators=kind.GPU | kind.CPU if on_gpu else kind.CPU,
        cpu_options=CpuOptions(num_threads=1),
        gpu_options=GpuOptions(enforce_f32=True),
    )
    model = CompiledModel.from_file(str(path), options=options)
    return lambda: compiled_process.call_signature(model, signature, inputs)


def time_in_turn(paths, signature, open_file, rounds):
    """Return the times in milliseconds of each file, and its outputs."""
    runs = {n: open_file(p, signature, make_inputs(p, signature)) for n, p in paths.items()}
    outputs, times = {n: run() for n, run in runs.items()}, {n: [] for n in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - start))
    return times, outputs


def time_in_browser(paths, signature, rounds):
    sys.path.insert(0, str(ROOT))
    from tests.browser import session

    if missing := session.find_missing():
        raise RuntimeError(missing)
    session.install_packages()
    times, outputs = {n: [] for n in paths}, {}
    with session.open_browser() as browser:
        for _ in range(5):
            for name, path in paths.items():
                calls = [(signature, make_inputs(path, signature))] * (1 + max(1, rounds // 5))
                times[name] += browser.time(path, calls)[1:]
        for name, path in paths.items():
            (outputs[name],) = browser.run(path, [(signature, make_inputs(path, signature))])
    return times, outputs


def report(runtime, times, outputs):
    whole, base = outputs["int8"], times["int8"]
    scale = max(np.abs(x.astype("float32")).max() for x in whole.values())
    for name, values in times.items():
        error = max(np.abs(whole[n].astype("float32") - outputs[name][n]).max() for n in whole)
        pairs = sorted(b / a for a, b in zip(base, values, strict=True))
        low, high = (pairs[round(q * (len(pairs) - 1))] for q in (0.25, 0.75))
        print(
            f"  {runtime:14} {name:15} {statistics.median(values):8.2f} ms, ratio "
            f"{statistics.median(values) / statistics.median(base):5.2f} ({low:.2f} to {high:.2f})"
            f", difference {error / scale:.1e}",
            flush=True,
        )


def measure(name, rounds, gpu):
    make, signature = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for kind, (quantization, runtime) in KINDS.items():
            files[kind] = pathlib.Path(folder) / kind.replace(" ", "-") / "model.tflite"
            files[kind].parent.mkdir()
            if gpu and runtime == "web":
                runtime = "gpu"
            make(files[kind], quantization=quantization, compatible_with=runtime)
        if gpu:
            del files["int4 in blocks"]  # crashes the delegate
            open_gpu = lambda *job: open_compiled(*job, on_gpu=True)  # noqa: E731
            report("GPU delegate", *time_in_turn(files, signature, open_gpu, rounds))
            return
        whole = files["int8"].stat().st_size
        sizes = {kind: path.stat().st_size / whole for kind, path in files.items()}
        shares = ", ".join(f"{kind} {size:.2f}" for kind, size in sizes.items())
        print(f"{name}: {whole / 1e6:.2f} MB; {shares}", flush=True)
        report("interpreter", *time_in_turn(files, signature, open_interpreter, rounds))
        report("CompiledModel", *time_in_turn(files, signature, open_compiled, rounds))
        report("browser", *time_in_browser(files, signature, rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--gpu", action="store_true", help="measure only the GPU delegate")
    arguments = parser.parse_args()
    for name in arguments.models:
        measure(name, arguments.rounds, arguments.gpu)
        if arguments.gpu:
            continue
        if reason := gpu_delegate.explain_missing():
            print(f"  {reason}")
            continue
        # in a process of its own, because its driver needs an environment
        command = [__file__, "--gpu", "--rounds", str(arguments.rounds), "--models", name]
        environment = os.environ | gpu_delegate._find_driver()[0]
        subprocess.run([sys.executable, *command], env=environment)
