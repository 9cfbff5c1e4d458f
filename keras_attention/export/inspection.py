"""Inspect model files without running them: signatures, ops, size and vocabulary sizes."""

import collections
import dataclasses

from keras_attention.core.lazy import keras, keras_internals
from keras_attention.export.checks.formatting import format_ops, format_signatures, format_size
from keras_attention.export.checks.report import Signature, Tensor
from keras_attention.export.checks.runner import find_format, load_keras_model
from keras_attention.export.graphs import flatbuffer
from keras_attention.files.manifest import count_bytes

# Operators that may be applied to ids before an embedding looks them up.
_PASSED = ("ADD", "CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SELECT", "SELECT_V2", "SLICE")


@dataclasses.dataclass(frozen=True)
class Inspection:
    """The description of a model file. `inspect` returns it, and `print` shows it as text.

    Attributes:
        path: str, the path of the file or folder.
        format: `"keras"`, `"saved_model"` or `"litert"`.
        signatures: tuple of `Signature`, with the names, shapes and dtypes of inputs and outputs.
        ops: dict from the type of an op to its count, or from the class of a layer for a `.keras`
            file.
        size: int, the number of bytes on disk.
        id_limits: dict from the name of an input of ids to the size of the embedding that looks up
            these ids. Inputs without an embedding are missing.
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
    """Return a description of a `.keras` file, a SavedModel folder or a `.tflite` file.

    The format is detected from the content, not from the name. A `.keras` file is loaded, so its
    custom layers must be importable. The other formats are read without loading the model.

    Returns:
        An `Inspection`.

    Raises:
        ValueError: the file is damaged or has another format.
        FileNotFoundError: the file does not exist.
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
    """Return the `Inspection` of a Keras model that was loaded from the file `path`."""
    from keras_attention.export.endpoint import make_endpoint

    endpoint = make_endpoint(model)
    outputs = tuple(
        Tensor(name, tuple(tensor.shape), tensor.dtype)
        for name, tensor in zip(endpoint.outputs, model.outputs, strict=True)
    )
    layers = collections.Counter(
        type(layer).__name__ for layer in keras_internals.inner_layers(model)
    )
    signature = Signature(endpoint.name, endpoint.inputs, outputs)
    limits = find_id_limits(model)
    return Inspection(str(path), "keras", (signature,), dict(layers), count_bytes(path), limits)


def find_id_limits(model):
    """Return a dict from the name of each input of ids to the size of its embedding.

    Larger ids than this size are invalid. Inputs without an embedding are left out, and so are
    inputs that a layer reads together with other inputs.
    """
    from keras_attention.export.checks.cases import find_smallest_table
    from keras_attention.export.endpoint import list_input_names

    limits = {}
    for name, tensor in zip(list_input_names(model), model.inputs, strict=True):
        calls = keras_internals.consumers(tensor)
        single = [operation for operation, inputs in calls if len(inputs) == 1]
        layers = [x for x in single if isinstance(x, keras.layers.Layer)]
        size = find_smallest_table(inner for x in layers for inner in keras_internals.all_layers(x))
        if size is not None:
            limits[name] = size
    return limits


def find_litert_id_limits(path):
    """Return a dict {input of ids: size of its embedding} for a LiteRT file.

    Only the first signature of the file `path` counts.
    """
    graph, limits = flatbuffer.read_graph(path), {}
    for name, tensor in graph.first_inputs.items():
        ids, sizes = {id(tensor)}, []
        for op in graph.operators:  # in execution order
            if op.kind == "GATHER" and id(op.inputs[1]) in ids:
                sizes.append(op.inputs[0].shape[0])
            elif op.kind in _PASSED and any(id(x) in ids for x in op.inputs):
                ids.add(id(op.outputs[0]))
        if sizes:
            limits[name] = min(sizes)
    return limits


def check_sizes(inspection, *, labels=None, vocabularies=None, lengths=None):
    """Raise a ValueError if labels, vocabularies or lengths do not match a model file.

    The labels or the vocabulary of another model would silently cause wrong predictions. This
    function cannot detect another vocabulary of equal size. `files.manifest.check_unchanged`
    compares the files themselves.

    Args:
        inspection: `Inspection` of the model file. Outputs are checked in the first signature, and
            inputs in all signatures, because a SavedModel does not order them.
        labels: int, the number of labels, which must be the size of the first output. None skips
            this check.
        vocabularies: dict from the name of an input of ids to the size of its vocabulary. A size of
            None is not checked.
        lengths: dict from the name of an input to the size of its last axis.
    """
    if labels is not None:
        _check_labels(inspection.path, inspection.signatures[0].outputs[0], labels)
    for name, entries in (vocabularies or {}).items():
        limit = inspection.id_limits.get(name, entries)
        if entries is not None and limit != entries:
            raise ValueError(
                f"The vocabulary has {entries} entries, but {inspection.path} was made for {limit} "
                f"ids in {name}. Use the vocabulary of this model."
            )
    shapes = {t.name: t.shape for s in inspection.signatures for t in s.inputs}
    for name, length in (lengths or {}).items():
        size = shapes[name][-1] if shapes.get(name) else None
        if size not in (None, length):
            raise ValueError(
                f"{inspection.path} takes {name} of size {size} along the last axis, but its "
                f"manifest says {length}. Use the manifest of this model."
            )


def _check_labels(path, output, labels):
    scores = output.shape[-1] if output.shape else None
    if scores not in (None, labels):
        raise ValueError(
            f"There are {labels} labels, but {path} returns {scores} scores in {output.name!r}. "
            "Use the labels of this model."
        )
