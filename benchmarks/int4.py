"""Int4 weights of LiteRT files compared with int8 weights: size, time and score.

    python benchmarks/int4.py kernels
    python benchmarks/int4.py task saved_models/shakespeare TEXTS [TARGETS] [--count 50]
    python benchmarks/int4.py encoder CHECKPOINT TEXTS [--count 100]
    python benchmarks/int4.py decoder [--layers 12]

`kernels` times single matrix products of a few sizes. `task` exports a trained task, and prints the
time of one step, and the scores on the last lines of TEXTS, or of TEXTS and TARGETS. The export
checks the files only on random inputs, and thus refuses none. `encoder` compares embeddings of
lines with those of the Keras model. `decoder` has the size of GPT-2 and random weights, so only
size and time count. Int4 is stored in blocks of 32, as the export does, in blocks of 128, and with
a scale for each row, as for a GPU. Times are CPU times on one thread, in turns, and the spread is
between quartiles.
"""

import argparse
import pathlib
import tempfile
import time

import keras
import numpy as np

import keras_attention as ka
from keras_attention.export import litert
from keras_attention.export.graphs import kernel_formats

FORMATS = {  # name: (quantization, block size)
    "int8": ("int8_weights", None),
    "int4, blocks of 32": ("int4_weights", 32),
    "int4, blocks of 128": ("int4_weights", 128),
    "int4, rows": ("int4_weights", None),
}
SIZES = ((768, 3072, 1), (3072, 768, 1), (384, 1536, 1), (768, 3072, 128), (384, 1536, 128))
SECONDS = 3.0


def write_files(write, names=FORMATS):
    """Call `write(name, quantization)` for each format, and return {name: path} of its files."""
    files, choose = {}, litert.choose_format
    for name in names:
        quantization, size = FORMATS[name]
        if quantization == "int4_weights":
            litert.choose_format = lambda *_, size=size: kernel_formats.Int4Blocks(size)
        try:
            files[name] = write(name.replace(" ", "-"), quantization)
        finally:
            litert.choose_format = choose
    whole = files["int8"].stat().st_size
    for name, path in files.items():
        size = path.stat().st_size
        print(f"{name}: {size / 1e6:.2f} MB, {size / whole:.2f} of int8", flush=True)
    return files


def compare(title, runs):
    """Time functions in turn, and print the ratios of their CPU times to the first function's."""
    times, end = {name: [] for name in runs}, time.monotonic() + SECONDS * len(runs)
    for run in runs.values():
        run()
    while time.monotonic() < end or len(times["int8"]) < 10:
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    reference = np.array(times["int8"])
    for name, seconds in times.items():
        low, middle, high = np.quantile(np.array(seconds) / reference, [0.25, 0.5, 0.75])
        milliseconds = np.median(seconds) * 1e3
        print(
            f"{title}: {name} {milliseconds:.3f} ms, ratio {middle:.2f} ({low:.2f} to {high:.2f})",
            flush=True,
        )


def make_runner(path, signature, inputs):
    """Return a function that runs a signature on one thread, with zeros for missing inputs."""
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner(signature)
    inputs = dict(inputs)
    for name, detail in run.get_input_details().items():
        shape = np.where(detail["shape_signature"] < 0, 1, detail["shape_signature"])
        inputs.setdefault(name, np.zeros(shape, detail["dtype"]))
    return lambda: run(**inputs)


def compare_kernels():
    for depth, outputs, length in SIZES:
        x = keras.Input((depth,), batch_size=length, name="x")
        model = keras.Model(x, keras.layers.Dense(outputs, name="y")(x))
        with tempfile.TemporaryDirectory() as folder:

            def write(name, quantization, model=model, folder=folder):
                path = pathlib.Path(folder) / f"{name}.tflite"
                ka.export.to_litert(model, path, quantization=quantization)
                return path

            files = write_files(write)
            runs = {n: make_runner(p, "serving_default", {}) for n, p in files.items()}
            compare(f"{depth} to {outputs}, {length} rows", runs)


def read_lines(path, count):
    lines = path.read_text("utf-8").splitlines()
    return list(filter(str.strip, lines))[-count:]


def compare_task(preset, texts, targets, count):
    task = ka.tasks.from_preset(preset)
    examples = read_lines(texts, count)
    if targets is not None:
        examples = list(zip(examples, read_lines(targets, count), strict=True))
    else:
        examples = ["\n".join(examples)]
    print(f"Keras: {task.evaluate(examples)}", flush=True)
    task.make_examples = lambda: None  # the export then refuses no file
    with tempfile.TemporaryDirectory() as folder:

        def write(name, quantization):
            path = pathlib.Path(folder) / name / "model.tflite"
            path.parent.mkdir()
            task.export(path, quantization=quantization)
            return path

        files = write_files(write)
        for name, path in files.items():
            print(f"{name}: {ka.tasks.from_preset(path).evaluate(examples)}", flush=True)
        compare("step", {n: make_runner(p, "step", {}) for n, p in files.items()})


def compare_encoder(checkpoint, texts, count):
    model, tokenizer = ka.pretrained.load(checkpoint), ka.pretrained.tokenizer(checkpoint)
    inputs = [tokenizer([text]) for text in read_lines(texts, count)]
    expected = np.array([np.asarray(model(x))[0] for x in inputs])
    with tempfile.TemporaryDirectory() as folder:

        def write(name, quantization):
            path = pathlib.Path(folder) / f"{name}.tflite"
            ka.export.to_litert(model, path, quantization=quantization)
            return path

        files = write_files(write)
        for name, path in files.items():
            run = ka.export.load(path)
            actual = np.array([next(iter(run(x).values()))[0] for x in inputs])
            cosines = (actual * expected).sum(1) / np.linalg.norm(actual, axis=1)
            same = (nearest(actual) == nearest(expected)).mean()
            print(f"{name}: cosine min {cosines.min():.4f}, mean {cosines.mean():.4f}; "
                  f"same nearest {same:.3f}", flush=True)  # fmt: skip
        for length in (1, 16, 128):
            ids = {"token_ids": np.full((1, length), 2023, "int32")}
            ids["segment_ids"] = np.zeros_like(ids["token_ids"])
            runs = {n: make_runner(p, "serving_default", ids) for n, p in files.items()}
            compare(f"T = {length}", runs)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return scores.argmax(1)


def compare_decoder(layers):
    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        50257, num_layers=layers, num_heads=12, hidden_dim=768, intermediate_dim=3072
    )
    generate = ka.export.Generation("greedy", 64, 1)
    with tempfile.TemporaryDirectory() as folder:

        def write(name, quantization):
            path, sizes = pathlib.Path(folder) / f"{name}.tflite", {"sequence_length": 32}
            ka.export.to_litert(
                model, path, quantization=quantization, generate=generate, batch_size=1, **sizes
            )
            return path

        files = write_files(write, ["int8", "int4, blocks of 32"])
        for signature in ("step", "prefill"):
            compare(signature, {n: make_runner(p, signature, {}) for n, p in files.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["kernels", "task", "encoder", "decoder"])
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH")
    parser.add_argument("--count", type=int, default=50, help="number of lines")
    parser.add_argument("--layers", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.kind == "kernels":
        compare_kernels()
    elif arguments.kind == "decoder":
        compare_decoder(arguments.layers)
    elif arguments.kind == "encoder":
        compare_encoder(*arguments.paths, arguments.count)
    else:
        compare_task(*[*arguments.paths, None][:3], arguments.count)


if __name__ == "__main__":
    main()
