"""The one error that exports raise, and how a converter's message becomes it."""

import dataclasses

from keras_attention.export import locate

_HINTS = {
    "BitwiseAnd": "ops.argmax of floats needs it: use ops.top_k(x, 1), or ops.argmax of integers.",
    "StridedSlice": "Indexing with None or `...` needs it when batch and length are both free: "
    "use ops.expand_dims or ops.reshape.",
    "TensorListReserve": "A recurrent loop that collects its steps in a TensorArray needs it: "
    "fix sequence_length and give the layer unroll=True.",
}
_DEFAULT_HINT = "Compute it with ops that LiteRT has, or export with to_saved_model."


class ExportError(Exception):
    """An export that was refused; nothing was left on disk.

    Attributes:
        op: str or None, the op that is to blame, as `"StridedSlice"`.
        layer: str or None, where it came from, as `"layer 'block_0/attention' (Attention)"`.
    """

    def __init__(self, message, *, op=None, layer=None):
        super().__init__(message)
        self.op, self.layer = op, layer


@dataclasses.dataclass(frozen=True)
class Culprit:
    """An op and the layer it came from."""

    op: str
    layer: str | None

    def __str__(self):
        return f"{self.op} in {self.layer}" if self.layer else self.op


def unsupported(culprits):
    """The error for ops that LiteRT's built-in set lacks."""
    first = culprits[0]
    listed = "; ".join(dict.fromkeys(map(str, culprits)))
    return ExportError(
        f"LiteRT has no built-in op for {listed}. {_HINTS.get(first.op, _DEFAULT_HINT)}",
        op=first.op,
        layer=first.layer,
    )


def from_converter(error, model):
    """Translates TensorFlow's ConverterError, which carries ops and locations as messages."""
    culprits = []
    for entry in getattr(error, "errors", None) or []:
        if entry.location.call:
            op = entry.operator.name.removeprefix("tf.")
            culprits.append(Culprit(op, locate.layer_of(model, entry.location.call[0].name)))
    if culprits:
        return unsupported(culprits)
    lines = [line for line in str(error).splitlines() if line.strip()]
    return ExportError(f"The LiteRT converter refused the model: {lines[0] if lines else error}")
