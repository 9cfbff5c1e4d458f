"""Checks of a LiteRT file's graph: ops, axes, shapes, weights, and which runtimes take it."""

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
_MOST_AXES = 4  # GPU and NPU delegates have no layout for more

# Refused by ai_edge_litert's GPU delegate, as measured operator by operator in files of fixed
# shapes (`graphs.gpu` rewrites what it can). `verify(..., runtime="gpu")` runs a file itself.
_REFUSED_BY_GPU = (
    *("BROADCAST_TO", "GATHER_ND", "LOG_SOFTMAX", "SCATTER_ND", "UNSORTED_SEGMENT_SUM", "WHILE"),
)

_MARGIN = 1.1
_SLACK = 64 * 1024  # bytes; in tiny models the parts that stay in float weigh more than 10 %


def check_ops(graph, model):
    """Raises ExportError for ops that the stock runtime lacks; returns warnings.

    Args:
        graph: `flatbuffer.Flatbuffer`.
        model: the model, to name the layers that ops came from.
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
            found = find_culprit(op, model)
            raise ExportError(
                f"The weights did not become constants: the file has {found}.",
                op=found.op,
                layer=found.layer,
            )


def _check_axes(graph, model):
    for op in graph.operators:
        axes = max((len(t.shape) for t in (*op.inputs, *op.outputs)), default=0)
        if axes > _MOST_AXES:
            found = find_culprit(op, model)
            raise ExportError(
                f"{found} works on {axes} axes; LiteRT's delegates know at most {_MOST_AXES}. "
                + found.hint("Merge axes with ops.reshape."),
                op=found.op,
                layer=found.layer,
            )


def check_static(graph, endpoints, model):
    """Raises ExportError where all inputs are fixed and a tensor is not, as delegates need it."""
    if any(None in tensor.shape for endpoint in endpoints for tensor in endpoint.inputs):
        return
    for op in graph.operators:
        if any(None in tensor.shape for tensor in op.outputs):
            raise make_static_error(find_culprit(op, model), model)


def check_int8(graph, model):
    """Raises ExportError where a full int8 file computes in floats; returns warnings.

    The converter silently leaves an op in floats where it has no range of its output.
    """
    products = [op for op in graph.operators if op.kind in _PRODUCTS] or graph.operators
    floats = [op for op in products if op.outputs and op.outputs[0].dtype != "int8"]
    if floats and len(floats) == len(products):
        raise ExportError(
            "The converter found no range for the activations, and left them in floats: look for "
            'NaN in calibration= and in the weights, or use "int8_weights", which needs no ranges.'
        )
    if not floats or products is graph.operators:
        return []
    return [
        f"{len(floats)} of {len(products)} products compute in floats, the first "
        f"{find_culprit(floats[0], model)}"
    ]


def check_weights(graph, model, quantization):
    """Raises ExportError when weights are stored more than once; returns warnings.

    Constants with as many elements as a weight count as weights. Other constants are tables that
    the converter computed in advance (positions, masks); they are legitimate and not counted.
    """
    sizes = {math.prod(weight.shape) for weight in model.weights}
    stored = sum(t.constant for t in graph.constants if t.elements in sizes)
    whole = count_weight_bytes(model)
    if stored > _MARGIN * whole + _SLACK:
        raise ExportError(
            f"The file holds {format_size(stored)} of weights, and the model has "
            f"{format_size(whole)}: some are stored more than once."
        )
    if stored > _MARGIN * quantization.weight_ratio * whole + _SLACK:
        left = f"{format_size(stored)} of {format_size(whole)}"
        return [f"quantized in part only: {left} are left"]
    return []


def find_culprit(op, model):
    """Return the `Culprit` of an operator: its kind and the layer that it came from."""
    # The last op is named after the signature's output: its inputs then tell the layer.
    names = [op.name, *(tensor.name for tensor in op.inputs)]
    layers = filter(None, (find_layer(model, name) for name in names))
    return Culprit(op.kind.removeprefix("Flex"), next(layers, None))


def find_minimum_runtime(graph):
    """Return the oldest runtimes that run the file, as far as is known: dict, package -> version.

    Measured with benchmarks/runtimes.py: tflite-runtime 2.14.0 runs what the converter says is for
    2.9.0 and refuses what is for 2.17.0 (dense layers with an int8 scale for each row), and
    ai-edge-litert runs both since 1.0.1, the oldest that was tried. That one crashes where an input
    is a scalar, as `index` of `step` is; 1.1.0 does not. Rows of a float16 table, which files of
    fixed shapes look up, are looked up since TensorFlow Lite 2.20.0 and ai-edge-litert 1.3.0; the
    converter's note does not tell.
    """
    lookups = [op for op in graph.operators if op.kind == "GATHER" and op.inputs]
    if any(op.inputs[0].dtype == "float16" for op in lookups):
        return {"tensorflow_lite": "2.20.0", "ai_edge_litert": "1.3.0"}
    scalars = any(not t.shape for s in graph.signatures for t in s.inputs)
    found = {"ai_edge_litert": "1.1.0" if scalars else "1.0.1"}
    return {"tensorflow_lite": graph.runtime, **found} if graph.runtime else found


def list_gpu_objections(graph):
    """Sentences on what a GPU delegate refuses in a graph, a tuple.

    TensorFlow's own analyzer calls every file compatible, so this reads the graph. It is advice:
    delegates leave single ops to the CPU.
    """
    kinds = {kind: [op for op in graph.operators if op.kind == kind] for kind in _REFUSED_BY_GPU}
    kinds["STRIDED_SLICE that drops or adds axes"] = [op for op in graph.operators if op.masked]
    counts = [f"{words}: {len(found)}" for words, found in kinds.items() if found]
    if any(None in t.shape for signature in graph.signatures for t in signature.inputs):
        counts.insert(0, "dynamic shapes: fix batch_size and sequence_length for a GPU")
    return tuple(counts)
