"""What the GPU delegates' sources and issue threads say they refuse, looked for in a file."""

_REFUSED = ("BROADCAST_TO", "GATHER_ND")


def lint(graph):
    """Sentences on what a GPU delegate would object to in a `flatbuffer.Flatbuffer`.

    TensorFlow's own analyzer calls every file compatible, so this reads the graph. It is advice:
    nothing here was run on a GPU, and delegates fall back to the CPU for single ops.
    """
    findings = [_dynamic(graph), *(_count(graph, kind, _is(kind)) for kind in _REFUSED)]
    findings += [
        _count(graph, "ADD or MUL of tensors with different numbers of axes", _mixed),
        _count(graph, "STRIDED_SLICE that drops or adds axes", lambda op: op.masked),
        _count(graph, "CAST to or from int64", _wide_cast),
    ]
    return tuple(finding for finding in findings if finding)


def _dynamic(graph):
    free = any(None in t.shape for signature in graph.signatures for t in signature.inputs)
    return "dynamic shapes: fix batch_size and sequence_length for a GPU" if free else None


def _count(graph, words, condition):
    count = sum(map(bool, map(condition, graph.operators)))
    return f"{words}: {count}" if count else None


def _is(kind):
    return lambda op: op.kind == kind


def _mixed(op):
    axes = {len(tensor.shape) for tensor in op.inputs if tensor.shape}
    return op.kind in ("ADD", "MUL") and len(axes) > 1


def _wide_cast(op):
    return op.kind == "CAST" and "int64" in {t.dtype for t in (*op.inputs, *op.outputs)}
