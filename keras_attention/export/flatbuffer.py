"""What is inside a LiteRT file, read with the schema that the runtime itself brings along."""

import collections
import dataclasses
import importlib
import math
import mmap
import struct

from keras_attention.export import backend
from keras_attention.export.report import Signature, Tensor


@dataclasses.dataclass(frozen=True)
class Stored(Tensor):
    """A tensor of the graph; `constant` is the size in bytes of its stored value, or 0."""

    constant: int
    buffer: int

    @property
    def elements(self):
        return math.prod(axis or 1 for axis in self.shape)


@dataclasses.dataclass(frozen=True)
class Operator:
    """One op: its kind, and its input and output tensors. Custom ops carry their own names.

    `masked` marks a STRIDED_SLICE that drops or adds axes.
    """

    kind: str
    custom: bool
    inputs: tuple[Stored, ...]
    outputs: tuple[Stored, ...]
    masked: bool

    @property
    def name(self):
        """The name of what it computes, which holds the scopes of the layers around it."""
        return self.outputs[0].name if self.outputs else ""


@dataclasses.dataclass(frozen=True)
class Flatbuffer:
    """A LiteRT file in plain terms."""

    signatures: tuple[Signature, ...]
    tensors: tuple[Stored, ...]
    operators: tuple[Operator, ...]

    @property
    def ops(self):
        return dict(collections.Counter(op.kind for op in self.operators))

    @property
    def constants(self):
        """The stored tensors, one per buffer: several tensors may share one."""
        return tuple({t.buffer: t for t in self.tensors if t.constant}.values())


def read(path):
    """Reads the graph of the LiteRT file at `path`; weights are not copied."""
    backend.litert()
    try:
        with open(path, "rb") as file:
            return _Reader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).read()
    except (
        ValueError,
        IndexError,
        TypeError,
        OverflowError,
        AttributeError,
        struct.error,
    ) as error:
        # What an offset that leads nowhere raises depends on where it leads.
        raise ValueError(f"{path} is damaged: its graph cannot be read.") from error


class _Reader:
    def __init__(self, content):
        self.schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.model = self.schema.Model.GetRootAs(content, 0)
        self.types = _names(self.schema.TensorType)
        self.kinds = _names(self.schema.BuiltinOperator)

    def read(self):
        graphs = [self.model.Subgraphs(i) for i in range(self.model.SubgraphsLength())]
        tensors = [[self.tensor(g.Tensors(i)) for i in range(g.TensorsLength())] for g in graphs]
        operators = [
            self.operator(graph.Operators(i), stored)
            for graph, stored in zip(graphs, tensors, strict=True)
            for i in range(graph.OperatorsLength())
        ]
        count = self.model.SignatureDefsLength()
        signatures = [self.signature(self.model.SignatureDefs(i), tensors) for i in range(count)]
        flat = tuple(tensor for stored in tensors for tensor in stored)
        return Flatbuffer(tuple(signatures), flat, tuple(operators))

    def tensor(self, entry):
        shape = tuple(int(entry.Shape(i)) for i in range(entry.ShapeLength()))
        signature = [int(entry.ShapeSignature(i)) for i in range(entry.ShapeSignatureLength())]
        shape = tuple(None if axis == -1 else axis for axis in signature or shape)
        buffer = self.model.Buffers(entry.Buffer())
        constant = buffer.Size() or buffer.DataLength()
        dtype = self.types[entry.Type()].lower()
        return Stored(_text(entry.Name()), shape, dtype, constant, entry.Buffer())

    def operator(self, entry, stored):
        code = self.model.OperatorCodes(entry.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        custom = number == self.schema.BuiltinOperator.CUSTOM
        inputs = [entry.Inputs(i) for i in range(entry.InputsLength())]
        return Operator(
            _text(code.CustomCode()) if custom else self.kinds[number],
            custom,
            tuple(stored[i] for i in inputs if i >= 0),  # -1: an optional input left out
            tuple(stored[entry.Outputs(i)] for i in range(entry.OutputsLength())),
            number == self.schema.BuiltinOperator.STRIDED_SLICE and self.masked(entry),
        )

    def masked(self, entry):
        options = self.schema.StridedSliceOptions()
        table = entry.BuiltinOptions()
        options.Init(table.Bytes, table.Pos)
        return any((options.EllipsisMask(), options.NewAxisMask(), options.ShrinkAxisMask()))

    def signature(self, entry, tensors):
        stored = tensors[entry.SubgraphIndex()]
        inputs = [entry.Inputs(i) for i in range(entry.InputsLength())]
        outputs = [entry.Outputs(i) for i in range(entry.OutputsLength())]
        return Signature(
            _text(entry.SignatureKey()), _named(inputs, stored), _named(outputs, stored)
        )


def _named(maps, stored):
    tensors = ((_text(entry.Name()), stored[entry.TensorIndex()]) for entry in maps)
    return tuple(Tensor(name, tensor.shape, tensor.dtype) for name, tensor in tensors)


def _names(enumeration):
    return {v: name for name, v in vars(enumeration).items() if isinstance(v, int)}


def _text(value):
    return (value or b"").decode()
