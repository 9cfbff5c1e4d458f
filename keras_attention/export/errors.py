"""The error that exports raise, with the op and the layer that are to blame."""

import dataclasses
import re

from keras_attention.core.lazy import keras, keras_internals

_HINTS = {
    "BitwiseAnd": "ops.argmax of floats needs it: use ops.top_k(x, 1), or ops.argmax of integers.",
    "Einsum": "Sums of products that are no product of matrices need it when batch and length are "
    "both free: use ops.sum of a product.",
    "StridedSlice": "Indexing with None or `...` needs it when batch and length are both free: "
    "use ops.expand_dims or ops.reshape.",
    "TensorListReserve": "A recurrent layer needs it where the batch is free: pass batch_size=1 "
    "and leave sequence_length out. For a fixed length, build the layer with unroll=True on a "
    "keras.Input of that length.",
}
_DEFAULT_HINT = "Compute it with ops that LiteRT has, or export with to_saved_model."
_FIXED_RECURRENCE_HINT = (
    "A recurrent layer that returns all steps does this: leave sequence_length out, or build the "
    "layer with unroll=True on a keras.Input of that length."
)
_FIVE_AXES = ("(ConvLSTM2D)", "(ConvLSTM3D)")
_FIVE_AXES_HINT = "Sequences of pictures have 5 axes or more: export with to_saved_model."


class ExportError(Exception):
    """An export that was refused; nothing was left on disk.

    Attributes:
        op: str or None, the op that is to blame, as `"StridedSlice"`.
        layer: str or None, where it came from, as `"layer 'block_0/attention' (Attention)"`.
    """

    def __init__(self, message, *, op=None, layer=None):
        super().__init__(message)
        self.op, self.layer = op, layer


def first_line(error):
    """The first line of an error, without the terminal colours and node names of TensorFlow."""
    text = re.sub(r"\x1b\[[0-9;]*m|\{\{.*?\}\}|\[Op:\w*\]", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    if lines[0].startswith("Exception encountered when calling") and len(lines) > 1:
        return lines[1]  # the first is Keras's, of the layer around
    return lines[0]


@dataclasses.dataclass(frozen=True)
class Culprit:
    """An op and the layer it came from."""

    op: str
    layer: str | None

    def __str__(self):
        return f"{self.op} in {self.layer}" if self.layer else self.op

    def hint(self, default):
        """Return advice on how to avoid the op. Without a particular one it is `default`."""
        if self.layer and self.layer.endswith(_FIVE_AXES):
            return _FIVE_AXES_HINT
        return _HINTS.get(self.op, default)


def make_op_error(culprits):
    """Return the `ExportError` for ops that LiteRT's built-in set lacks."""
    first = culprits[0]
    listed = "; ".join(dict.fromkeys(map(str, culprits)))
    hints = " ".join(dict.fromkeys(culprit.hint(_DEFAULT_HINT) for culprit in culprits))
    return ExportError(
        f"LiteRT has no built-in op for {listed}. {hints}", op=first.op, layer=first.layer
    )


def make_static_error(culprit, model):
    """Make the `ExportError` for an op that gives a free shape although all inputs are fixed."""
    layers = keras_internals.all_layers(model)
    hint = _FIXED_RECURRENCE_HINT if any(isinstance(x, keras.layers.RNN) for x in layers) else ""
    return ExportError(
        f"All inputs are fixed, but the shape of what {culprit} computes is not. {hint}".rstrip(),
        op=culprit.op,
        layer=culprit.layer,
    )


def make_converter_error(explained, model):
    """The `ExportError` for what `converter.explain_error` gives for a conversion of `model`."""
    culprits = [Culprit(op, find_layer(model, node)) for op, node in explained["ops"]]
    if culprits:
        return make_op_error(culprits)
    return ExportError(f"The LiteRT converter refused the model: {explained['reason']}")


def find_layer(model, op_name):
    """Names the innermost layer of `model` that an op of a graph came from.

    Keras opens a name scope per layer, and TensorFlow keeps it in op names, in converter errors
    and in the tensor names of LiteRT files: `labeler_1/block_0_1/attention_1/MatrixInverse`. The
    numbers at the end make scopes unique (Keras enters each layer's scope twice, so the first
    call is `_1`); `dense_1` may thus be a call of `dense`, and that reading is tried first.

    Returns:
        str such as `"layer 'block_0/attention' (MultiHeadAttention)"`, or None when the name
        shows no layer.
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
