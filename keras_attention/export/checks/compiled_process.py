"""Runs LiteRT files in `CompiledModel`, in a process that files and drivers may crash.

A script, started by `compiled_model.py` with the path of a folder. It reads `jobs.json` there, a
list of {number, path, signature, batches, accelerator}, and from `<number>.npz` a job's inputs,
with keys `batch|name`. It writes `<number>.out.npz` in the same form and `<number>.json`. What the
runtime logs about a job goes to the standard error, between the lines `job <number>`.
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
        # Past Python's own buffer, so that it comes before what the runtime writes.
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
        # Half precision, which some GPUs take by themselves, would hide what is computed wrongly.
        options = Options(
            hardware_accelerators=HardwareAccelerator.GPU | HardwareAccelerator.CPU,
            gpu_options=GpuOptions(enforce_f32=True),
        )
    model, results = CompiledModel.from_file(job["path"], options=options), {}
    with np.load(inputs) as arrays:
        for i in range(job["batches"]):
            batch = {k.partition("|")[2]: arrays[k] for k in arrays if k.startswith(f"{i}|")}
            found = call_signature(model, job["signature"], batch)
            results |= {f"{i}|{name}": value for name, value in found.items()}
    np.savez(outputs, **results)
    return {"fully_accelerated": model.is_fully_accelerated()}


def call_signature(model, signature, batch):
    """The outputs of a signature for a batch, dicts of arrays; every call has new buffers."""
    known = model.get_output_tensor_details(signature)
    given = {name: model.create_input_buffer_by_name(signature, name) for name in batch}
    taken = {name: model.create_output_buffer_by_name(signature, name) for name in known}
    for name, buffer in given.items():
        buffer.write(batch[name])
    model.run_by_name(signature, given, taken)
    return {name: read_buffer(taken[name], details) for name, details in known.items()}


def read_buffer(buffer, details):
    shape = tuple(details["shape"])
    return buffer.read(int(np.prod(shape)), np.dtype(details["dtype"])).reshape(shape)


if __name__ == "__main__":
    main(sys.argv[1])
