"""Checks of the graph in a LiteRT file: ops, axes, shapes, weights and compatible runtimes."""

import math

from keras_attention.export.checks.formatting import format_size
from keras_attention.export.errors import (
    Culprit,
    ExportError,
    find_layer,
    make_op_error,
    make_static_error,
)
from keras_attention.export.memory import count_weight_bytes

_VARIABLES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
_PRODUCTS = ("FULLY_CONNECTED", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
_MOST_AXES = 4  # the maximum number of axes that GPU and NPU delegates support

# Operators that the GPU delegate of ai_edge_litert does not support. Each was tested in a file of
# fixed shapes. `graphs.gpu` replaces some of them. `verify(..., runtime="gpu")` tests a file.
_REFUSED_BY_GPU = (
    *("BROADCAST_TO", "GATHER_ND", "LOG_SOFTMAX", "SCATTER_ND", "UNSORTED_SEGMENT_SUM", "WHILE"),
)

_MARGIN = 1.1
_SLACK = 64 * 1024  # bytes, because in tiny models more than 10 % of the weights remain floats


def check_ops(graph, model):
    """Check that the standard runtime and delegates support all ops of a file.

    Args:
        graph: `flatbuffer.Flatbuffer`, the content of the file.
        model: `keras.Model`, whose layers are named in errors and warnings.

    Returns:
        A list of warnings (str) about slow ops.

    Raises:
        ExportError: the graph has custom ops, variables, or tensors with too many axes.
    """
    if foreign := [op for op in graph.operators if op.custom]:
        raise make_op_error([find_culprit(op, model) for op in foreign])
    _check_variables(graph, model)
    _check_axes(graph, model)
    wide = [op for op in graph.operators if "int64" in op.dtypes]
    if not wide:
        return []
    return [f"{len(wide)} ops compute in int64, the first {find_culprit(wide[0], model)}"]


def _check_variables(graph, model):
    for op in graph.operators:
        if op.kind in _VARIABLES:
            culprit = find_culprit(op, model)
            raise ExportError(
                f"The weights did not become constants. The file has {culprit}. Use only layers "
                "whose weights are tracked by Keras.",
                op=culprit.op,
                layer=culprit.layer,
            )


def _check_axes(graph, model):
    for op in graph.operators:
        axes = max((len(t.shape) for t in (*op.inputs, *op.outputs)), default=0)
        if axes > _MOST_AXES:
            culprit = find_culprit(op, model)
            raise ExportError(
                f"{culprit} works on {axes} axes. LiteRT's delegates support at most {_MOST_AXES}. "
                + culprit.hint("Merge axes with ops.reshape."),
                op=culprit.op,
                layer=culprit.layer,
            )


def check_static(graph, endpoints, model):
    """Raise an ExportError if all inputs have fixed shapes, but another tensor does not.

    `graph` is the `Flatbuffer` of the file, `endpoints` its functions, and `model` the Keras model,
    whose layers are named. Delegates require fixed shapes for all tensors.
    """
    if any(None in tensor.shape for endpoint in endpoints for tensor in endpoint.inputs):
        return
    for op in graph.operators:
        if any(None in tensor.shape for tensor in op.outputs):
            raise make_static_error(find_culprit(op, model), model)


def check_int8(graph, model):
    """Raise an ExportError if all matrix products in a full int8 file compute in floats.

    Otherwise return a list of warnings, which has one warning if some products compute in floats.
    `graph` is the `Flatbuffer` of the file, and `model` the `keras.Model`. The converter silently
    keeps an op in floats if the range of its output could not be measured.
    """
    products = [op for op in graph.operators if op.kind in _PRODUCTS] or graph.operators
    floats = [op for op in products if op.outputs and op.outputs[0].dtype != "int8"]
    if floats and len(floats) == len(products):
        raise ExportError(
            "The converter found no range for the activations, and left them in floats. Look for "
            'NaN in calibration= and in the weights, or use quantization="int8_weights", which '
            "needs no ranges."
        )
    if not floats or products is graph.operators:
        return []
    return [
        f"{len(floats)} of {len(products)} products compute in floats, the first "
        f"{find_culprit(floats[0], model)}"
    ]


def check_weights(graph, model, quantization):
    """Raise an ExportError if weights are stored more than once.

    Otherwise return a list of warnings, which has one warning if only some weights are quantized.
    `graph` is the `Flatbuffer` of the file, `model` the `keras.Model`, and `quantization` a
    `Quantization`. Constants that have as many elements as a weight of the model count as weights.
    Other constants, such as positions and masks, were computed by the converter and do not count.
    """
    sizes = {math.prod(weight.shape) for weight in model.weights}
    stored = sum(t.constant for t in graph.constants if t.elements in sizes)
    whole = count_weight_bytes(model)
    if stored > _MARGIN * whole + _SLACK:
        raise ExportError(
            f"The file holds {format_size(stored)} of weights, but the model has "
            f"{format_size(whole)}, so some weights are stored more than once. Please report this "
            "model."
        )
    if stored > _MARGIN * quantization.weight_ratio * whole + _SLACK:
        left = f"{format_size(stored)} of {format_size(whole)}"
        return [f"only partly quantized: {left} are left"]
    return []


def find_culprit(op, model):
    """Return a `Culprit`: the type of an `Operator` in a file, and the layer that created it.

    `op` is the operator, and `model` the `keras.Model` with the layer.
    """
    # The last op has the name of an output of the signature. Then its inputs name the layer.
    names = [op.name, *(tensor.name for tensor in op.inputs)]
    layers = filter(None, (find_layer(model, name) for name in names))
    return Culprit(op.kind.removeprefix("Flex"), next(layers, None))


def find_minimum_runtime(graph):
    """Return a dict {runtime: the oldest known version that runs a file}.

    The versions were measured with benchmarks/runtimes.py:

    - tflite-runtime 2.14.0 can run files that require 2.9.0, but not files that require 2.17.0
      (dense layers with an int8 scale for each row).
    - ai-edge-litert can run both since 1.0.1, the oldest tested version. But it crashes on scalar
      inputs, such as `index` of `step`, before 1.1.0.
    - Int4 kernels run in ai-edge-litert since 1.1.2, and in blocks since 2.1.6. Before that, blocks
      crash or give wrong numbers, so files with blocks require a newer version of the operator.
      Version 2.21.0 is the only TensorFlow Lite that was tested.
    - Lookups of rows in a float16 table, in files of fixed shapes, require TensorFlow Lite 2.20.0
      or ai-edge-litert 1.3.0. The converter does not record this in the file.
    """
    lookups = [op for op in graph.operators if op.kind == "GATHER" and op.inputs]
    if any(op.inputs[0].dtype == "float16" for op in lookups):
        return {"tensorflow_lite": "2.20.0", "ai_edge_litert": "1.3.0"}
    int4 = [t for t in graph.constants if t.dtype == "int4"]
    if int4:
        in_blocks = any(t.block_size for t in int4)
        return {"tensorflow_lite": "2.21.0", "ai_edge_litert": "2.1.6" if in_blocks else "1.1.2"}
    scalars = any(not t.shape for s in graph.signatures for t in s.inputs)
    versions = {"ai_edge_litert": "1.1.0" if scalars else "1.0.1"}
    return {"tensorflow_lite": graph.runtime, **versions} if graph.runtime else versions


def list_gpu_objections(graph):
    """Return a tuple of phrases about parts of a graph that a GPU delegate does not support.

    The phrases are only advice, because delegates leave individual ops to the CPU. (TensorFlow's
    analyzer reports every file as compatible.)
    """
    kinds = {kind: [op for op in graph.operators if op.kind == kind] for kind in _REFUSED_BY_GPU}
    kinds["STRIDED_SLICE that drops or adds axes"] = [op for op in graph.operators if op.masked]
    kinds["FULLY_CONNECTED of int4 in blocks, which crashes"] = [
        op for op in graph.operators if any(t.block_size for t in op.inputs)
    ]
    counts = [f"{name}: {len(ops)}" for name, ops in kinds.items() if ops]
    if any(None in t.shape for signature in graph.signatures for t in signature.inputs):
        counts.insert(0, "dynamic shapes: fix batch_size and sequence_length for a GPU")
    return tuple(counts)
