"""Script that runs LiteRT files in `CompiledModel`, in a process that files or drivers may crash.

`compiled_model.py` starts this script with the path of a folder. From this folder the script reads
`jobs.json`, a list of {number, path, signature, batches, accelerator}, and the inputs of each job
from `<number>.npz`, with keys `batch|name`. The script writes the outputs to `<number>.out.npz` in
the same form, and the result to `<number>.json`. The log of the runtime goes to stderr, where each
job starts with the line `job <number>`.
"""

import json
import os
import pathlib
import sys

import numpy as np


def main(folder):
    folder = pathlib.Path(folder)
    for job in json.loads((folder / "jobs.json").read_text("utf-8")):
        number = job["number"]
        # This bypasses Python's buffer, so that the line precedes the log of the runtime.
        os.write(2, f"\njob {number}\n".encode())
        try:
            result = run_job(job, folder / f"{number}.npz", folder / f"{number}.out.npz")
        except Exception as error:
            result = {"error": " ".join(str(error).split()) or repr(error)}
        (folder / f"{number}.json").write_text(json.dumps(result), "utf-8")


def run_job(job, inputs, outputs):
    from ai_edge_litert.compiled_model import (
        CompiledModel,
        GpuOptions,
        HardwareAccelerator,
        Options,
    )

    options = None
    if job["accelerator"] == "gpu":
        # Some GPUs use half precision by default, which would hide wrong results.
        options = Options(
            hardware_accelerators=HardwareAccelerator.GPU | HardwareAccelerator.CPU,
            gpu_options=GpuOptions(enforce_f32=True),
        )
    model, results = CompiledModel.from_file(job["path"], options=options), {}
    with np.load(inputs) as arrays:
        for i in range(job["batches"]):
            batch = {k.partition("|")[2]: arrays[k] for k in arrays if k.startswith(f"{i}|")}
            results |= {
                f"{i}|{name}": value
                for name, value in call_signature(model, job["signature"], batch).items()
            }
    np.savez(outputs, **results)
    return {"fully_accelerated": model.is_fully_accelerated()}


def call_signature(model, signature, batch):
    """Run a signature on a batch (a dict of arrays), and return a dict of output arrays.

    `model` is the `CompiledModel` of a file, and `signature` the name of a function in this file.
    """
    details = model.get_output_tensor_details(signature)
    inputs = {name: model.create_input_buffer_by_name(signature, name) for name in batch}
    outputs = {name: model.create_output_buffer_by_name(signature, name) for name in details}
    for name, buffer in inputs.items():
        buffer.write(batch[name])
    model.run_by_name(signature, inputs, outputs)
    return {name: read_buffer(outputs[name], entry) for name, entry in details.items()}


def read_buffer(buffer, details):
    shape = tuple(details["shape"])
    return buffer.read(int(np.prod(shape)), np.dtype(details["dtype"])).reshape(shape)


if __name__ == "__main__":
    main(sys.argv[1])
