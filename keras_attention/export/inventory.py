"""The ops in a LiteRT file: only built-in ones, no variables, no more than four axes."""

from keras_attention.export import errors, locate

_VARIABLES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
_MOST_AXES = 4  # GPU and NPU delegates have no layout for more


def check(graph, model):
    """Raises ExportError for ops that the stock runtime lacks; returns warnings.

    Args:
        graph: `flatbuffer.Flatbuffer`.
        model: the model, to name the layers that ops came from.
    """
    if foreign := [op for op in graph.operators if op.custom]:
        raise errors.unsupported([culprit(op, model) for op in foreign])
    _check_variables(graph, model)
    _check_axes(graph, model)
    wide = [op for op in graph.operators if any(t.dtype == "int64" for t in op.outputs)]
    if not wide:
        return []
    return [f"{len(wide)} ops compute in int64, the first {culprit(wide[0], model)}"]


def _check_variables(graph, model):
    for op in graph.operators:
        if op.kind in _VARIABLES:
            found = culprit(op, model)
            raise errors.ExportError(
                f"The weights did not become constants: the file has {found}.",
                op=found.op,
                layer=found.layer,
            )


def _check_axes(graph, model):
    for op in graph.operators:
        axes = max((len(t.shape) for t in (*op.inputs, *op.outputs)), default=0)
        if axes > _MOST_AXES:
            found = culprit(op, model)
            raise errors.ExportError(
                f"{found} works on {axes} axes; LiteRT's delegates know at most {_MOST_AXES}. "
                "Merge axes with ops.reshape.",
                op=found.op,
                layer=found.layer,
            )


def culprit(op, model):
    """The op and the layer it came from."""
    # The last op is named after the signature's output: its inputs then tell the layer.
    names = [op.name, *(tensor.name for tensor in op.inputs)]
    layers = filter(None, (locate.layer_of(model, name) for name in names))
    return errors.Culprit(op.kind.removeprefix("Flex"), next(layers, None))
