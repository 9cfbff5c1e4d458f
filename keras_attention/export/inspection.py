"""Inspection of model files without running them: signatures, ops, size, vocabulary sizes."""

import collections
import dataclasses

from keras_attention.core.lazy import keras, keras_internals
from keras_attention.export.checks.formatting import format_ops, format_signatures, format_size
from keras_attention.export.checks.report import Signature, Tensor
from keras_attention.export.checks.runner import find_format, load_keras_model
from keras_attention.export.graphs import flatbuffer
from keras_attention.files.manifest import count_bytes

# Operators that ids pass on their way to a table, and stay ids.
_PASSED = ("ADD", "CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SELECT", "SELECT_V2", "SLICE")


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A model file in plain terms; `print` shows it.

    Attributes:
        path: str.
        format: `"keras"`, `"saved_model"` or `"litert"`.
        signatures: its functions, with names, shapes and dtypes.
        ops: dict, kind of op -> count; for a `.keras` file, class of layer -> count.
        size: int, bytes on disk.
        id_limits: dict, name of an input -> how many ids its embedding knows, where that is seen.
    """

    path: str
    format: str
    signatures: tuple[Signature, ...]
    ops: dict
    size: int
    id_limits: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        head = f"{self.path}: {self.format}, {format_size(self.size)}"
        return "\n".join([head, format_signatures(self.signatures), format_ops(self.ops)])


def inspect(path):
    """Reads what is in a `.keras` file, a SavedModel folder or a `.tflite` file.

    The content decides what kind of file it is, not the name. A `.keras` file is loaded, so that
    its custom layers must be importable; the others are only read.

    Returns:
        `Inspection`.

    Raises:
        ValueError: if the file is no model, or damaged. FileNotFoundError: if there is none.
    """
    kind, size = find_format(path), count_bytes(path)
    if kind == "keras":
        return inspect_model(load_keras_model(path), path)
    if kind == "litert":
        graph, limits = flatbuffer.read_graph(path), find_litert_id_limits(path)
        return Inspection(str(path), kind, graph.signatures, graph.ops, size, limits)
    from keras_attention.export.saved_model import read_saved_model

    return Inspection(str(path), kind, *read_saved_model(path), size)


def inspect_model(model, path):
    """Return the `Inspection` of a model that was loaded from the `.keras` file `path`."""
    from keras_attention.export.endpoint import make_endpoint

    found = make_endpoint(model)
    outputs = tuple(
        Tensor(name, tuple(tensor.shape), tensor.dtype)
        for name, tensor in zip(found.outputs, model.outputs, strict=True)
    )
    layers = collections.Counter(
        type(layer).__name__ for layer in keras_internals.inner_layers(model)
    )
    signature = Signature(found.name, found.inputs, outputs)
    limits = find_id_limits(model)
    return Inspection(str(path), "keras", (signature,), dict(layers), count_bytes(path), limits)


def find_id_limits(model):
    """dict, name of an input of a functional model -> the size of the embedding that reads it.

    Inputs that no embedding reads, or that one reads together with others, are left out.
    """
    from keras_attention.export.checks.cases import find_smallest_table
    from keras_attention.export.endpoint import list_input_names

    found = {}
    for name, tensor in zip(list_input_names(model), model.inputs, strict=True):
        calls = keras_internals.consumers(tensor)
        alone = [operation for operation, inputs in calls if len(inputs) == 1]
        layers = [x for x in alone if isinstance(x, keras.layers.Layer)]
        size = find_smallest_table(inner for x in layers for inner in keras_internals.all_layers(x))
        if size is not None:
            found[name] = size
    return found


def find_litert_id_limits(path):
    """`find_id_limits` for a LiteRT file's first signature, by the tables that ids go into."""
    graph, found = flatbuffer.read_graph(path), {}
    for name, tensor in graph.first_inputs.items():
        ids, sizes = {id(tensor)}, []
        for op in graph.operators:  # in the order in which they run
            if op.kind == "GATHER" and id(op.inputs[1]) in ids:
                sizes.append(op.inputs[0].shape[0])
            elif op.kind in _PASSED and any(id(x) in ids for x in op.inputs):
                ids.add(id(op.outputs[0]))
        if sizes:
            found[name] = min(sizes)
    return found


def check_sizes(inspection, *, labels=None, vocabularies=None, lengths=None):
    """Raises ValueError where a model is not made for these sizes of labels and vocabularies.

    With those of another model its answers would be silently wrong. (Where the sizes agree, digests
    tell them apart: see `files.manifest.check_unchanged`.)

    Args:
        inspection: `Inspection` of the model's file. Its first signature's outputs count, and all
            signatures' inputs: a SavedModel has them in no order.
        labels: int, how many labels there are for its first output.
        vocabularies: dict, name of an input of ids -> how many entries its vocabulary has; None
            where the model may have more.
        lengths: dict, name of an input -> the size of its last axis.
    """
    if labels is not None:
        _check_labels(inspection.path, inspection.signatures[0].outputs[0], labels)
    for name, entries in (vocabularies or {}).items():
        known = inspection.id_limits.get(name, entries)
        if entries is not None and known != entries:
            raise ValueError(
                f"The vocabulary has {entries} entries, and {inspection.path} was made for {known} "
                f"ids in {name}: it is the vocabulary of another model."
            )
    shapes = {t.name: t.shape for s in inspection.signatures for t in s.inputs}
    for name, length in (lengths or {}).items():
        wanted = shapes[name][-1] if shapes.get(name) else None
        if wanted not in (None, length):
            raise ValueError(
                f"{inspection.path} takes {name} of {wanted} along the last axis, and {length} is "
                "what the manifest beside it says: it is the manifest of another model."
            )


def _check_labels(path, output, labels):
    scores = output.shape[-1] if output.shape else None
    if scores not in (None, labels):
        raise ValueError(
            f"There are {labels} labels, and {path} gives {scores} scores in {output.name!r}: they "
            "are the labels of another model."
        )
