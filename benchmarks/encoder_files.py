"""An encoder as a file: LiteRT compared with ONNX Runtime and PyTorch, on one thread.

    python benchmarks/encoder_files.py [--rounds 15] [--layers 4] [--width 768] [--length 128]

The same weights in every file, batch 1. ONNX Runtime reads what Keras exports, also with its
dynamic int8 weights, and PyTorch computes with its dynamic int8. Every runtime works in its own
process, and the processes take turns. Ratios are to ONNX Runtime in float32 and in int8. Needs the
extra backends.
"""

import argparse
import os
import pathlib
import statistics
import tempfile

import numpy as np
import workers

SEED, HEAD = 0, 64


def make_model(layers, width, length):
    import keras

    import keras_attention as ka

    keras.utils.set_random_seed(SEED)
    x = inputs = keras.Input((length, width), name="x")
    for _ in range(layers):
        x = ka.blocks.EncoderBlock(
            attention=ka.attention.MultiHeadAttention(width // HEAD, HEAD),
            feed_forward=ka.blocks.FeedForward(4 * width, "gelu"),
            norm="post",
        )(x)
    return keras.Model(inputs, x)


def write_files(folder, layers, width, length):
    """Write the encoder in all formats, and its output for `make_input`."""
    from onnxruntime import quantization

    import keras_attention as ka

    model = make_model(layers, width, length)
    ka.export.to_litert(model, folder / "float32.tflite")
    ka.export.to_litert(model, folder / "int8.tflite", quantization="int8_weights")
    model.export(folder / "float32.onnx", format="onnx", verbose=False)
    quantization.quantize_dynamic(
        folder / "float32.onnx", folder / "int8.onnx", weight_type=quantization.QuantType.QInt8
    )
    np.save(folder / "expected.npy", np.array(model(make_input(width, length))))


def make_input(width, length):
    return np.random.default_rng(0).normal(size=(1, length, width)).astype("float32")


def run_litert(path, x):
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner()
    (name,) = run.get_input_details()
    return lambda: next(iter(run(**{name: x}).values()))


def run_onnx(path, x):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


FILES = {
    "ONNX Runtime, float32": (run_onnx, "float32.onnx"),
    "LiteRT, float32": (run_litert, "float32.tflite"),
    "ONNX Runtime, int8": (run_onnx, "int8.onnx"),
    "LiteRT, int8_weights": (run_litert, "int8.tflite"),
}


def work(name, folder, width, length):
    read, file = FILES[name]
    folder = pathlib.Path(folder)
    run = read(folder / file, make_input(int(width), int(length)))
    expected = np.load(folder / "expected.npy")

    def answer(request):
        output = run()
        if request == "compare":
            return {"error": float(np.abs(output - expected).max())}

    workers.serve(answer)


def main(rounds, layers, width, length):
    os.environ["OMP_NUM_THREADS"] = "1"
    from keras_attention.training import speed_report

    print(speed_report())
    with tempfile.TemporaryDirectory() as folder:
        write_files(pathlib.Path(folder), layers, width, length)
        size = (folder, str(width), str(length))
        runs = {name: workers.Worker(__file__, "--work", name, *size) for name in FILES}
        errors = {name: run.ask("compare")["error"] for name, run in runs.items()}
        workers.in_turn(runs, "warm", 2)
        turns = workers.in_turn(runs, "run", rounds)
        print(f"{layers} layers of {width}, T{length}, batch 1, one thread")
        print(f"  {'':24} {'ms':>8} {'to float32':>10}  spread        {'to int8':>7}  spread")
        pairs = [workers.ratios(turns, f"ONNX Runtime, {kind}") for kind in ("float32", "int8")]
        for name in FILES:
            milliseconds = 1000 * statistics.median(turn["wall"] for turn in turns[name])
            cells = [f"{x[0]:8.2f}  {x[1]:.2f} to {x[2]:.2f}" for x in (p[name] for p in pairs)]
            print(f"  {name:24} {milliseconds:8.1f} {' '.join(cells)}  error {errors[name]:.1e}")
        for run in runs.values():
            run.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--work", nargs=4)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
    else:
        main(arguments.rounds, arguments.layers, arguments.width, arguments.length)
