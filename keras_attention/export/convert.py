"""Convert a SavedModel to a LiteRT file that contains only built-in ops."""

import copy
import importlib
import json
import pathlib
import signal
import tempfile

import numpy as np

from keras_attention.export import backend, converter
from keras_attention.export.errors import ExportError, make_converter_error
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.balanced_products import balance_products
from keras_attention.export.graphs.embedding_tables import compact_tables
from keras_attention.export.graphs.gpu import adapt_to_gpu
from keras_attention.export.graphs.kernel_formats import INT8_ROWS
from keras_attention.export.quantization import FLOAT32

_SCRIPT = pathlib.Path(__file__).with_name("converter.py")


def convert_saved_model(
    folder,
    endpoints,
    model,
    *,
    quantization=FLOAT32,
    calibration=None,
    per_channel=True,
    kernel_format=INT8_ROWS,
):
    """Convert a SavedModel to a LiteRT file, and return its content as bytes.

    Args:
        folder: path of the SavedModel.
        endpoints: list of the `Endpoint`s in the SavedModel. Each becomes a signature of the file.
        model: the Keras model, whose layers are named in errors.
        quantization: `Quantization`, which decides how weights are stored.
        calibration: list of dicts of arrays with the shapes of the first endpoint, for full int8.
        per_channel: bool, whether int8 weights of dense layers have a scale for each row.
        kernel_format: a format of `kernel_formats`, for kernels of files with quantized weights.

    Raises:
        ExportError: the model needs an op that is not built into LiteRT.
    """
    signatures = [endpoint.name for endpoint in endpoints]
    if quantization.quantizes_activations:
        # A separate process, because the quantizer crashes if an activation overflows.
        content = _convert_in_process(folder, signatures, model, calibration, per_channel)
    else:
        content = _convert(folder, signatures, quantization.name, model, per_channel)
        if quantization.has_scales:
            content = compact_tables(content, [w for w in model.weights if len(w.shape) == 2])
            content = balance_products(content, model.weights, kernel_format)
    return separate_outputs(adapt_to_gpu(content))


def _convert(folder, signatures, quantization, model, per_channel):
    backend.import_tensorflow()
    from tensorflow.lite.python.convert_phase import ConverterError

    try:
        with backend.hide_stderr():
            return converter.convert_folder(
                folder, signatures, quantization, per_channel=per_channel
            )
    except (ConverterError, RuntimeError) as error:  # the quantizer raises RuntimeError
        raise make_converter_error(converter.explain_error(error), model) from error


def _convert_in_process(folder, signatures, model, samples, per_channel):
    """Convert a SavedModel to full int8 in a separate process, and return the file as bytes.

    `folder` is the path of the SavedModel, `signatures` are the names of the signatures, `samples`
    the calibration batches, and `model` is the Keras model, whose layers are named in errors. With
    `per_channel`, dense kernels have a scale for each row.
    """
    with tempfile.TemporaryDirectory() as workplace:
        workplace = pathlib.Path(workplace)
        job = {"folder": str(folder), "signatures": signatures}
        job |= {"quantization": "int8", "per_channel": per_channel}
        (workplace / "job.json").write_text(json.dumps(job), "utf-8")
        arrays = {f"{i}|{name}": x for i, one in enumerate(samples) for name, x in one.items()}
        np.savez(workplace / "samples.npz", **arrays)
        done = backend.run_script(_SCRIPT, workplace)
        if (workplace / "error.json").exists():
            explained = json.loads((workplace / "error.json").read_text("utf-8"))
            raise make_converter_error(explained, model)
        if done.returncode:
            raise ExportError(_describe_end(done))
        return (workplace / "model.tflite").read_bytes()


def _describe_end(done):
    """Return a str that explains why the process of the converter ended without a file.

    `done` is a `subprocess.CompletedProcess`.
    """
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return f"The LiteRT converter could not run: {lines[-1]}"
    if -done.returncode == getattr(signal, "SIGKILL", None):
        return (
            "The LiteRT converter was killed during the conversion to int8, most likely because "
            "memory ran out. Close other programs, or convert on a larger machine."
        )
    return (
        f"TensorFlow's LiteRT converter crashed ({signal.Signals(-done.returncode).name}) during "
        "the conversion to int8. This happens if a number inside the model overflows. Look for "
        "very large numbers in calibration= and in the weights, or use "
        'quantization="int8_weights", which measures no activations.'
    )


def separate_outputs(content):
    """Give every output of a signature in a LiteRT file a separate tensor.

    The converter merges equal tensors: two outputs may share a tensor, and an output may be the
    same tensor as an input or a constant. The interpreter returns such outputs correctly. But
    `CompiledModel` and browsers fill only one buffer for each tensor that an op computes, so that
    other outputs with the same tensor are undefined.

    Args:
        content: bytes, the content of the file.

    Returns:
        bytes, the new content. Most files have no shared outputs: then this is `content` itself.
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
    """Add ops that copy shared tensors, so that each output of a signature has its own tensor.

    `file` is a `flatbuffer.GraphFile`, and `signature` is an entry of its `signatureDefs`.
    """
    graph, entries = file.graphs[signature.subgraphIndex], signature.outputs
    written = {number for op in graph.operators for number in op.outputs}
    outputs = list(graph.outputs)
    for k in flatbuffer.find_shared([entry.tensorIndex for entry in entries], written):
        old = entries[k].tensorIndex
        tensor = copy.copy(graph.tensors[old])
        tensor.name = entries[k].name
        tensor.buffer = 0  # the empty buffer of computed tensors
        new = flatbuffer.add_tensor(graph, tensor)
        # A CAST to the same dtype copies tensors of any shape, and GPU delegates support it.
        dtypes = {"inDataType": tensor.type, "outDataType": tensor.type}
        graph.operators.append(file.operator("CAST", [old], new, **dtypes))
        entries[k].tensorIndex = new
        outputs[len(outputs) - 1 - outputs[::-1].index(old)] = new
    graph.outputs = np.asarray(outputs, "int32")
