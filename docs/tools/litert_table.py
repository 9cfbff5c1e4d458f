"""Print the table of docs/guides/pretrained-on-device.md: checkpoints on LiteRT and a GPU delegate.

    python docs/tools/litert_table.py [--generate] [NAME ...]

Each NAME is a folder of tests/pretrained/checkpoints. The file of a decoder has `step`, and with
`--generate` also the loop of greedy decoding. All files have fixed shapes, because GPU delegates
need them. They run in the stock runtime, and on a delegate if the machine has a Vulkan driver.
"""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import keras_attention as ka  # noqa: E402
from tests.pretrained.make_checkpoints import CHECKPOINTS, FOLDER  # noqa: E402

LENGTH, NEW = 8, {"max_length": 16, "max_new_tokens": 6}
# The tokens that begin and end a text, for models that generate.
MARKS = {
    "causal_language_model": {"end_token_id": 2},
    "encoder_decoder": {"start_token_id": 0, "end_token_id": 2},
    "speech_to_text": {"start_token_id": 30, "end_token_id": 29},
}


def export(name, path, loops):
    """Return the `ExportReport` of a checkpoint's file, for a decoder with `loops`."""
    stored = CHECKPOINTS[name][-1]
    task = {"task": stored["task"]} if "task" in stored else {}
    model = ka.pretrained.load(FOLDER / name, **task)
    has_length = any(None in tensor.shape[1:] for tensor in model.inputs)
    options = {"batch_size": 1, "sequence_length": LENGTH if has_length else None}
    if model.name == "speech_to_text":
        options["sequence_length"] = model.inputs[0].shape[1]
    if model.name in MARKS:
        new = NEW if loops else {"max_length": NEW["max_length"]}
        options["generate"] = ka.export.Generation(loops, **new, **MARKS[model.name])
    return ka.export.to_litert(model, path, compatible_with="gpu", **options)


def write_line(name, report):
    """Return a line of the table."""
    signatures = ", ".join(f"`{one.name}`" for one in report.signatures)
    (gpu,) = [runtime.note for runtime in report.runtimes if "GPU" in runtime.name]
    gpu = gpu.replace("ran with all operators on the GPU, max abs error", "all of it, off by")
    return f"| `{name}` | {signatures} | {report.max_abs_error:.0e} | {gpu} |"


if __name__ == "__main__":
    print("| checkpoint | signatures | largest error | on the GPU delegate |")
    print("| --- | --- | ---: | --- |")
    names = [name for name in sys.argv[1:] if name != "--generate"]
    loops = "greedy" if "--generate" in sys.argv else []
    for name in names or CHECKPOINTS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                report = export(name, pathlib.Path(folder) / "model.tflite", loops)
            except ka.export.ExportError as error:
                print(f"| `{name}` | | | no file: {error} |", flush=True)
            else:
                print(write_line(name, report), flush=True)
