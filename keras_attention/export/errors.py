"""The error that exports raise, with the op and the layer that caused it."""

import dataclasses
import re

from keras_attention.core.lazy import keras, keras_internals

_HINTS = {
    "BitwiseAnd": "It is used by ops.argmax of floats. Use ops.top_k(x, 1), or ops.argmax of "
    "integers.",
    "Einsum": "It is used if batch and length are both free and the sum of products is not a "
    "matrix product. Use ops.sum of a product.",
    "StridedSlice": "It is used by indexing with None or `...` if batch and length are both free. "
    "Use ops.expand_dims or ops.reshape.",
    "TensorListReserve": "It is used by a recurrent layer with a free batch. Pass batch_size=1 and "
    "leave sequence_length out. For a fixed length, build the layer with unroll=True on a "
    "keras.Input of that length.",
}
_DEFAULT_HINT = "Replace it by ops that LiteRT supports, or use to_saved_model."
_FIXED_RECURRENCE_HINT = (
    "A recurrent layer that returns all steps causes this. Leave sequence_length out, or build the "
    "layer with unroll=True on a keras.Input of that length."
)
_FIVE_AXES = ("(ConvLSTM2D)", "(ConvLSTM3D)")
_FIVE_AXES_HINT = "Sequences of images have 5 axes or more. Use to_saved_model."


class ExportError(Exception):
    """Raised if a model cannot be exported, or if the file fails a check. No file is written.

    Attributes:
        op: str, the op that caused the error, such as `"StridedSlice"`, or None if it is unknown.
        layer: str, the layer of this op, such as `"layer 'block_0/attention' (Attention)"`, or None
            if it is unknown.
    """

    def __init__(self, message, *, op=None, layer=None):
        super().__init__(message)
        self.op, self.layer = op, layer


def first_line(error):
    """Return the first line of an error's message, without terminal colors and graph node names."""
    text = re.sub(r"\x1b\[[0-9;]*m|\{\{.*?\}\}|\[Op:\w*\]", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    if lines[0].startswith("Exception encountered when calling") and len(lines) > 1:
        lines.pop(0)  # this line only names the layer
    return lines[0] if lines[0].endswith((".", ":", "!", "?")) else f"{lines[0]}."


@dataclasses.dataclass(frozen=True)
class Culprit:
    """An op that caused an error, and the layer that the op belongs to (None if unknown)."""

    op: str
    layer: str | None

    def __str__(self):
        return f"{self.op} in {self.layer}" if self.layer else self.op

    def hint(self, default):
        """Return advice on how to avoid the op, or `default`."""
        if self.layer and self.layer.endswith(_FIVE_AXES):
            return _FIVE_AXES_HINT
        return _HINTS.get(self.op, default)


def make_op_error(culprits):
    """Return the `ExportError` for ops that are not built into LiteRT.

    `culprits` is a list of `Culprit`, one for each op.
    """
    first = culprits[0]
    listed = "; ".join(dict.fromkeys(map(str, culprits)))
    hints = " ".join(dict.fromkeys(culprit.hint(_DEFAULT_HINT) for culprit in culprits))
    return ExportError(
        f"LiteRT has no built-in op for {listed}. {hints}", op=first.op, layer=first.layer
    )


def make_static_error(culprit, model):
    """Return the `ExportError` for an op whose output shape is dynamic in a file of fixed shapes.

    `culprit` is the op, a `Culprit`, and `model` the `keras.Model`, which may explain the cause.
    """
    layers = keras_internals.all_layers(model)
    hint = _FIXED_RECURRENCE_HINT if any(isinstance(x, keras.layers.RNN) for x in layers) else ""
    return ExportError(
        f"All inputs have fixed shapes, but the output of {culprit} has not. {hint}".rstrip(),
        op=culprit.op,
        layer=culprit.layer,
    )


def make_converter_error(explained, model):
    """Return the `ExportError` for a failed conversion of a model.

    `explained` is a dict, the result of `converter.explain_error`.
    """
    culprits = [Culprit(op, find_layer(model, node)) for op, node in explained["ops"]]
    if culprits:
        return make_op_error(culprits)
    reason = explained["reason"].rstrip(".")
    return ExportError(
        f"The LiteRT converter refused the model: {reason}. Change the model, or use "
        "to_saved_model."
    )


def find_layer(model, op_name):
    """Find the innermost layer of a model that the op called `op_name` in a graph belongs to.

    Keras opens a name scope for each layer. TensorFlow keeps these scopes in op names, in converter
    errors and in the tensor names of LiteRT files, such as
    `labeler_1/block_0_1/attention_1/MatrixInverse`. The numbers at the end make scopes unique.
    Keras enters the scope of each layer twice, so the first call has the suffix `_1`. `dense_1` may
    be a call of the layer `dense`, which is tried first, or a layer with this name.

    Returns:
        str such as `"layer 'block_0/attention' (MultiHeadAttention)"`, or None if the name does not
        contain the name of a layer.
    """
    path, layer = [], None
    children = {model.name: model}
    for part in re.split("[/;@]", op_name):
        child = children.get(re.sub(r"_\d+$", "", part), children.get(part))
        if child is None and layer is not None:
            break
        if child is not None:
            path, layer = [*path, child.name], child
            children = {inner.name: inner for inner in keras_internals.direct_layers(child)}
    if layer is None:
        return None
    if layer is model:
        return f"model '{model.name}' (no layer of its own)"
    return f"layer '{'/'.join(path[1:])}' ({type(layer).__name__})"
