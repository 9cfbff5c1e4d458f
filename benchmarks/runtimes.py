"""Check which old and new runtimes run our LiteRT files with the same outputs as the current one.

    python benchmarks/runtimes.py [--runtimes ai-edge-litert==1.1.2 ...] [--files model.tflite ...]

pip installs each runtime into its own folder. Every signature runs in its own process, because a
runtime may crash. Without `--files` a file of every kind is exported. The last line lists results
that contradict the `minimum_runtime` of the export reports.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from keras_attention.export.checks.graph_checks import find_minimum_runtime
from keras_attention.export.graphs import flatbuffer

RUNTIMES = (
    "tflite-runtime==2.14.0",
    *(f"ai-edge-litert=={v}" for v in ("1.0.1", "1.1.2", "1.2.0", "1.3.0", "1.4.0")),
    *(f"ai-edge-litert=={v}" for v in ("2.0.3", "2.1.6", "2.2.0", "2.3.0")),
)
# {runtime: dependencies that this environment lacks}
BESIDE = dict.fromkeys(("tflite-runtime==2.14.0", "ai-edge-litert==1.0.1"), ["numpy<2"])
TOLERANCE = 1e-4  # kernels of different versions round differently
SECONDS = 120

# The program of the process. Arguments: runtime, file, signature, files of inputs and outputs.
CALL = """
import sys
import numpy as np
if sys.argv[1] == "tflite-runtime":
    from tflite_runtime.interpreter import Interpreter
else:
    from ai_edge_litert.interpreter import Interpreter
_, _, path, signature, input_file, output_file = sys.argv
run = Interpreter(model_path=path).get_signature_runner(signature)
np.savez(output_file, **run(**np.load(input_file)))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES)
    parser.add_argument("--files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        files = arguments.files or make_files(folder)
        calls = [call for file in files for call in calls_of(file, folder)]
        print(f"| runtime | {' | '.join(map(label, files))} |")
        print(f"| --- | {' | '.join('---' for _ in files)} |")
        minimum = {file: find_minimum_runtime(flatbuffer.read_graph(file)) for file in files}
        notes, surprises = [], []
        for runtime in arguments.runtimes:
            place = install(runtime, folder)
            cells = {file: [] for file in files}
            for file, signature, input_file, expected in calls:
                fault = run(runtime, place, file, signature, input_file, expected)
                cells[file].append(fault)
                if fault:
                    notes.append(f"{runtime}, {label(file)}, {signature}: {fault}")
            row = " | ".join(map(summarize, cells.values()))
            print(f"| {runtime} | {row} |", flush=True)
            for file, faults in cells.items():
                if is_new_enough(runtime, minimum[file]) == any(map(is_a_failure, faults)):
                    surprises.append(f"{runtime} and {label(file)}, which wants {minimum[file]}")
        print("", *notes, "", f"not as minimum_runtime says: {surprises or 'none'}", sep="\n")


def make_files(folder):
    """Export a LiteRT file of every kind to `folder`, and return the paths."""
    import keras_attention as ka
    from keras_attention.generation import Beam

    size = dict(num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=128)
    labeler = ka.models.sequence_labeler(200, 5, **size, position=["alibi", "relative_bias"])
    images = ka.models.vision_transformer(16, 5, patch_size=4, num_channels=3, **size)
    writer = ka.models.causal_language_model(200, **size, position="rotary")
    translator = ka.models.seq2seq_transformer(200, **size)
    recurrent = ka.models.seq2seq_recurrent(200, 200, hidden_dim=64)
    ids = np.random.default_rng(0).integers(1, 200, (8, 12)).astype("int32")
    samplers = ["greedy", Beam(3)]
    writes = {"generate": ka.export.Generation(samplers, 16, 4, end_token_id=2)}
    reads = {"generate": ka.export.Generation(samplers, 16, start_token_id=1, end_token_id=2)}
    fixed = {"batch_size": 1, "sequence_length": 12}
    kinds = {
        "labeler": (labeler, {}),
        "labeler_fixed": (labeler, fixed),
        "labeler_float16": (labeler, {"quantization": "float16"}),
        "labeler_float16_fixed": (labeler, {"quantization": "float16", **fixed}),
        "labeler_int8_weights": (labeler, {"quantization": "int8_weights"}),
        "labeler_int8_weights_fixed": (labeler, {"quantization": "int8_weights", **fixed}),
        "labeler_per_tensor": (labeler, {"quantization": "int8_weights", "per_channel": False}),
        "labeler_int8": (labeler, {"quantization": "int8", "calibration": [ids], **fixed}),
        "images_fixed": (images, {"batch_size": 1}),
        "images_int8_weights_fixed": (images, {"quantization": "int8_weights", "batch_size": 1}),
        "writer": (writer, writes),
        "writer_fixed": (writer, {**writes, **fixed}),
        "writer_float16_fixed": (
            writer,
            {**writes, **fixed, "quantization": "float16"},
        ),
        "writer_int8_weights": (
            writer,
            {**writes, "quantization": "int8_weights"},
        ),
        "translator": (translator, reads),
        "translator_fixed": (translator, {**reads, **fixed}),
        "translator_int8_weights": (
            translator,
            {**reads, "quantization": "int8_weights"},
        ),
        "translator_per_tensor": (
            translator,
            {**reads, "quantization": "int8_weights", "per_channel": False},
        ),
        "recurrent": (recurrent, reads),
    }
    for name, (model, settings) in kinds.items():
        ka.export.to_litert(model, folder / f"{name}.tflite", **settings)
    return [folder / f"{name}.tflite" for name in kinds]


def label(file):
    """Return the name of a file and of its folder, for tables."""
    return f"{file.parent.name}/{file.stem}"


def calls_of(file, folder):
    """Yield (file, signature, file of inputs, expected outputs) for every signature."""
    from ai_edge_litert.interpreter import Interpreter

    import keras_attention as ka

    for signature in Interpreter(str(file)).get_signature_list():
        runner = ka.export.load(file, signature)
        inputs = draw(runner)
        input_file = folder / f"{label(file).replace('/', '.')}.{signature}.npz"
        np.savez(input_file, **inputs)
        yield file, signature, input_file, runner(inputs)


def draw(runner):
    """Draw inputs for a signature. Dynamic axes get one row and 12 positions."""
    random, arrays = np.random.default_rng(0), {}
    details = runner.function.get_input_details()
    for name, dtype in runner.inputs.items():
        shape = [12 if i else 1 for i in range(len(details[name]["shape"]))]
        signed = details[name]["shape_signature"]
        shape = [x if x > 0 else free for x, free in zip(signed, shape, strict=True)]
        if np.issubdtype(dtype, np.floating):
            arrays[name] = random.normal(size=shape).astype(dtype)
        elif name in ("index", "start") or name.endswith("mask"):
            arrays[name] = np.ones(shape, dtype)
        else:
            arrays[name] = random.integers(1, 17, shape).astype(dtype)
    return arrays


def is_new_enough(runtime, minimum):
    """Return whether a runtime is at least the `minimum_runtime` of a report."""
    name, version = runtime.split("==")
    keys = {"tflite-runtime": "tensorflow_lite", "ai-edge-litert": "ai_edge_litert"}
    least = minimum[keys[name]]
    return [int(x) for x in version.split(".")] >= [int(x) for x in least.split(".")]


def is_a_failure(fault):
    """Return whether `fault`, a result of `run`, says that a signature did not run at all."""
    return fault is not None and "is off by" not in fault


def summarize(faults):
    """Return the text of a table cell: whether all signatures ran, with the same outputs."""
    if not any(faults):
        return "yes"
    if not any(map(is_a_failure, faults)):
        return f"off by {max(float(fault.split()[-1]) for fault in filter(None, faults))}"
    return "in part" if None in faults else "no"


def install(runtime, folder):
    """Install a runtime with pip into its own folder, and return the folder."""
    place = folder / runtime
    for wheel in (runtime, *BESIDE.get(runtime, ())):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*command, str(place), wheel], check=True, stderr=subprocess.DEVNULL)
    return place


def run(runtime, place, file, signature, input_file, expected):
    """Run a signature, and return None, or a description of the failure or difference."""
    output_file = input_file.with_suffix(".out.npz")
    output_file.unlink(missing_ok=True)
    name = runtime.split("==")[0]
    done = subprocess.run(
        [sys.executable, "-c", CALL, name, str(file), signature, str(input_file), str(output_file)],
        env=os.environ | {"PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return f"exit status {done.returncode}: {lines[-1] if lines else ''}"
    with np.load(output_file) as outputs:
        for output, array in expected.items():
            error = np.abs(outputs[output].astype("float64") - array).max()
            if not error <= TOLERANCE * max(1.0, np.abs(array).max()):
                return f"{output} is off by {error:.2g}"
    return None


if __name__ == "__main__":
    main()
