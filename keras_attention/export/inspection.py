"""What a model file offers, without running it: signatures, ops, size."""

import collections
import dataclasses

from keras_attention.export import endpoint, files, flatbuffer, keras_file, saved_model_file, text
from keras_attention.export.report import Signature, Tensor


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A model file in plain terms; `print` shows it.

    Attributes:
        path: str.
        format: `"keras"`, `"saved_model"` or `"litert"`.
        signatures: its functions, with names, shapes and dtypes.
        ops: dict, kind of op -> count; for a `.keras` file, class of layer -> count.
        size: int, bytes on disk.
    """

    path: str
    format: str
    signatures: tuple[Signature, ...]
    ops: dict
    size: int

    def __str__(self):
        head = f"{self.path}: {self.format}, {text.size(self.size)}"
        return "\n".join([head, text.signatures(self.signatures), text.ops(self.ops)])


def inspect(path):
    """Reads what is in a `.keras` file, a SavedModel folder or a `.tflite` file.

    The kind is told by the content, not by the name. A `.keras` file is loaded, so that its
    custom layers must be importable; the others are only read.

    Returns:
        `Inspection`.

    Raises:
        ValueError: if the file is no model, or damaged. FileNotFoundError: if there is none.
    """
    kind = files.kind(path)
    signatures, ops = _READERS[kind](path)
    return Inspection(str(path), kind, signatures, ops, files.size(path))


def _keras(path):
    model = keras_file.load(path)
    found = endpoint.of(model)
    outputs = tuple(
        Tensor(name, tuple(tensor.shape), tensor.dtype)
        for name, tensor in zip(found.outputs, model.outputs, strict=True)
    )
    layers = collections.Counter(
        type(layer).__name__ for layer in model._flatten_layers(include_self=False)
    )
    return (Signature(found.name, found.inputs, outputs),), dict(layers)


def _litert(path):
    graph = flatbuffer.read(path)
    return graph.signatures, graph.ops


_READERS = {"keras": _keras, "saved_model": saved_model_file.read, "litert": _litert}
