"""Conversion of a SavedModel to the bytes of a LiteRT file, with built-in ops only."""

import copy
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy as np

from keras_attention.export import backend, converter
from keras_attention.export.errors import ExportError, make_converter_error
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.balanced_products import balance_products
from keras_attention.export.graphs.embedding_tables import compact_tables
from keras_attention.export.graphs.gpu import adapt_to_gpu
from keras_attention.export.quantization import FLOAT32

_SCRIPT = pathlib.Path(__file__).with_name("converter.py")


def convert_saved_model(
    folder, endpoints, model, *, quantization=FLOAT32, calibration=None, per_channel=True
):
    """Converts the SavedModel in `folder`.

    Args:
        endpoints: list of `Endpoint` that were saved there; each becomes a signature.
        model: the Keras model, to name its layers in errors.
        quantization: `Quantization`.
        calibration: list of dicts of arrays in the first endpoint's shapes, for full int8.
        per_channel: bool, whether the int8 weights of dense layers have a scale for each row.

    Returns:
        bytes. An op that LiteRT's built-in set lacks is an ExportError that names it.
    """
    signatures = [endpoint.name for endpoint in endpoints]
    if quantization.quantizes_activations:
        # Where an activation overflows, TensorFlow's quantizer ends the process it runs in.
        content = _convert_apart(folder, signatures, model, calibration, per_channel=per_channel)
    else:
        content = _convert_here(folder, signatures, quantization.name, model, per_channel)
        if quantization.has_scales:
            content = compact_tables(content, [w for w in model.weights if len(w.shape) == 2])
            content = balance_products(content, model.weights)
    return separate_outputs(adapt_to_gpu(content))


def _convert_here(folder, signatures, quantization, model, per_channel):
    backend.import_tensorflow()
    from tensorflow.lite.python.convert_phase import ConverterError

    try:
        with backend.hide_stderr():
            return converter.convert_folder(
                folder, signatures, quantization, per_channel=per_channel
            )
    except (ConverterError, RuntimeError) as error:  # RuntimeError: from the quantizer
        raise make_converter_error(converter.explain_error(error), model) from error


def _convert_apart(folder, signatures, model, samples, **settings):
    """Converts to full int8 in a new process, of TensorFlow alone (a few seconds more)."""
    with tempfile.TemporaryDirectory() as workplace:
        workplace = pathlib.Path(workplace)
        job = {"folder": str(folder), "signatures": signatures, "quantization": "int8", **settings}
        (workplace / "job.json").write_text(json.dumps(job), "utf-8")
        arrays = {f"{i}|{name}": x for i, one in enumerate(samples) for name, x in one.items()}
        np.savez(workplace / "samples.npz", **arrays)
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        # -P: the script's own folder must not come first on the path of the new process.
        done = subprocess.run(
            [sys.executable, "-P", str(_SCRIPT), str(workplace)],
            env=os.environ | quiet,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if (workplace / "error.json").exists():
            explained = json.loads((workplace / "error.json").read_text("utf-8"))
            raise make_converter_error(explained, model)
        if done.returncode:
            raise ExportError(_describe_end(done))
        return (workplace / "model.tflite").read_bytes()


def _describe_end(done):
    """Why the process of the converter ended without a file."""
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return f"The LiteRT converter could not run: {lines[-1]}"
    if -done.returncode == getattr(signal, "SIGKILL", None):
        return (
            "The LiteRT converter was killed while it converted to int8: most likely the memory "
            "was not enough. Close other programs, or convert on a larger machine."
        )
    return (
        f"TensorFlow's LiteRT converter crashed ({signal.Signals(-done.returncode).name}) while it "
        "converted to int8. That happens where a number inside the model overflows: look for very "
        'large numbers in calibration= and in the weights, or use "int8_weights", which measures '
        "no activations."
    )


def separate_outputs(content):
    """The LiteRT file `content`, in which every output of a signature is a tensor of its own.

    The converter merges equal tensors: two outputs may be one tensor, and an output may be an
    input or a constant. The interpreter gives them all, but `CompiledModel` and browsers fill one
    buffer for each tensor that an op writes, and leave the other outputs to chance.

    Args:
        content: bytes.

    Returns:
        bytes; `content` itself where there is nothing to do, as in most files.
    """
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    model = schema.Model.GetRootAs(content, 0)  # without a copy
    if not any(shared for _, shared in flatbuffer.list_shared_outputs(model)):
        return content
    file = flatbuffer.GraphFile(content)
    for signature in file.model.signatureDefs:
        _copy_shared(file, signature)
    return file.content()


def _copy_shared(file, signature):
    """Gives outputs of a signature that share a tensor one of their own, with an op before it."""
    graph, entries = file.graphs[signature.subgraphIndex], signature.outputs
    written = {number for op in graph.operators for number in op.outputs}
    outputs = list(graph.outputs)
    for k in flatbuffer.find_shared([entry.tensorIndex for entry in entries], written):
        old = entries[k].tensorIndex
        tensor = copy.copy(graph.tensors[old])
        tensor.name = entries[k].name
        tensor.buffer = 0  # the empty one, of tensors that are computed
        new = flatbuffer.add_tensor(graph, tensor)
        # A CAST to its own type copies any tensor, of free shape, too, and GPU delegates know it.
        dtypes = {"inDataType": tensor.type, "outDataType": tensor.type}
        graph.operators.append(file.operator("CAST", [old], new, **dtypes))
        entries[k].tensorIndex = new
        outputs[len(outputs) - 1 - outputs[::-1].index(old)] = new
    graph.outputs = np.asarray(outputs, "int32")
