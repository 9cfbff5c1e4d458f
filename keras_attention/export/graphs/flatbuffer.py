"""LiteRT files by the schema of the runtime: read in plain terms, or as objects to change."""

import collections
import dataclasses
import hashlib
import importlib
import math
import mmap
import struct

import numpy as np

from keras_attention.export import backend
from keras_attention.export.checks.report import Signature, Tensor

# The names of options that are no words of one capital.
_OPTIONS = {"STRIDED_SLICE": "StridedSliceOptions", "BATCH_MATMUL": "BatchMatMulOptions"}


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
    def dtypes(self):
        """Those of its outputs, a set."""
        return {tensor.dtype for tensor in self.outputs}

    @property
    def name(self):
        """The name of what it computes, which holds the scopes of the layers around it."""
        return self.outputs[0].name if self.outputs else ""


@dataclasses.dataclass(frozen=True)
class Flatbuffer:
    """A LiteRT file in plain terms.

    `shared` has for each signature the names of outputs that are no tensor of their own: a
    constant, an input, or another output once more.
    `first_inputs` has the tensors that the first signature's inputs are in the graph, by name.
    `runtime` is the first TensorFlow Lite that has the version of every op, as the converter notes
    it in the file.
    """

    signatures: tuple[Signature, ...]
    tensors: tuple[Stored, ...]
    operators: tuple[Operator, ...]
    shared: dict = dataclasses.field(default_factory=dict)
    first_inputs: dict = dataclasses.field(default_factory=dict)
    runtime: str | None = None

    @property
    def ops(self):
        return dict(collections.Counter(op.kind for op in self.operators))

    @property
    def constants(self):
        """The stored tensors, one per buffer: several tensors may share one."""
        return tuple({t.buffer: t for t in self.tensors if t.constant}.values())


# The last files that were read, by the digest of their content: an export looks a dozen times at
# its file, and reading the graph of one that generates takes longer than running it.
_LAST_READ = {}
_MOST_READ = 8


def read_graph(path):
    """Reads the graph of the LiteRT file at `path`; weights are not copied."""
    backend.import_litert()
    try:
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        digest = hashlib.blake2b(content).digest()
        graph = _LAST_READ.pop(digest, None) or _Reader(content).read()
        _LAST_READ[digest] = graph
        while len(_LAST_READ) > _MOST_READ:
            del _LAST_READ[next(iter(_LAST_READ))]
        return graph
    except (
        ValueError,
        IndexError,
        TypeError,
        OverflowError,
        AttributeError,
        struct.error,
    ) as error:
        # An offset that leads nowhere raises one of these, depending on where it leads.
        raise ValueError(f"{path} is damaged: its graph cannot be read.") from error


class _Reader:
    def __init__(self, content):
        self.schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.model = self.schema.Model.GetRootAs(content, 0)
        self.types = _list_names(self.schema.TensorType)
        self.kinds = _list_names(self.schema.BuiltinOperator)

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
        shared, inputs = dict(list_shared_outputs(self.model)), {}
        if count:
            first = self.model.SignatureDefs(0)
            entries = [first.Inputs(i) for i in range(first.InputsLength())]
            stored = tensors[first.SubgraphIndex()]
            inputs = {_text(entry.Name()): stored[entry.TensorIndex()] for entry in entries}
        return Flatbuffer(tuple(signatures), flat, tuple(operators), shared, inputs, self.runtime())

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

    def runtime(self):
        for i in range(self.model.MetadataLength()):
            entry = self.model.Metadata(i)
            if _text(entry.Name()) == "min_runtime_version":
                content = self.model.Buffers(entry.Buffer()).DataAsNumpy()
                return content.tobytes().rstrip(b"\0").decode() or None
        return None

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


def _list_names(enumeration):
    return {v: name for name, v in vars(enumeration).items() if isinstance(v, int)}


def _text(value):
    return (value or b"").decode()


def list_shared_outputs(model):
    """(name of a signature, names of its outputs that no op writes for them alone) of a file.

    Args:
        model: `Model` of the schema.
    """
    for i in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(i)
        graph = model.Subgraphs(signature.SubgraphIndex())
        ops = (graph.Operators(k) for k in range(graph.OperatorsLength()))
        written = {op.Outputs(k) for op in ops for k in range(op.OutputsLength())}
        outputs = [signature.Outputs(k) for k in range(signature.OutputsLength())]
        shared = find_shared([entry.TensorIndex() for entry in outputs], written)
        yield signature.SignatureKey().decode(), [outputs[k].Name().decode() for k in shared]


def find_shared(tensors, written):
    """Indices into a list of tensors: those that occur before, or that no op writes."""
    return [k for k, x in enumerate(tensors) if x not in written or x in tensors[:k]]


class GraphFile:
    """A LiteRT file; operators name the tensors of a graph by number.

    Args:
        content: bytes.
    """

    def __init__(self, content):
        self.schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.model = self.schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
        self.graphs = self.model.subgraphs
        self.kinds = _list_names(self.schema.BuiltinOperator)

    def content(self):
        """Return the file as bytes."""
        builder = importlib.import_module("flatbuffers").Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def kind(self, operator):
        """Return the name of what an operator does, such as `"GATHER"`."""
        return self.kinds[self.model.operatorCodes[operator.opcodeIndex].builtinCode]

    def of_kind(self, kind, operators):
        """Those of `operators` that are of a kind."""
        codes, code = self.model.operatorCodes, getattr(self.schema.BuiltinOperator, kind)
        return [x for x in operators if codes[x.opcodeIndex].builtinCode == code]

    def operator(self, kind, inputs, output, **options):
        """A new operator, in no graph yet; `options` are attributes of its table in the schema."""
        name = _OPTIONS.get(kind, f"{kind.capitalize()}Options")
        table = getattr(self.schema, f"{name}T", lambda: None)()  # FLOOR has no options
        for key, value in options.items():
            setattr(table, key, value)
        return self.schema.OperatorT(
            opcodeIndex=self._code_index(kind),
            inputs=np.asarray(inputs, "int32"),
            outputs=np.asarray([output], "int32"),
            builtinOptionsType=getattr(self.schema.BuiltinOptions, name, 0),
            builtinOptions=table,
        )

    def value(self, tensor):
        """Return the stored numbers of a constant of float16, float32 or int32, or None."""
        types, data = self.schema.TensorType, self.bytes_of(tensor)
        known = ("float16", "float32", "int32")
        dtype = {getattr(types, name.upper()): name for name in known}.get(tensor.type)
        if not data or dtype is None:
            return None
        return np.frombuffer(data, dtype).reshape(get_shape(tensor))

    def bytes_of(self, tensor):
        """Return the stored bytes of a tensor; none if it is computed."""
        data = self.model.buffers[tensor.buffer].data
        return b"" if data is None else np.asarray(data, "uint8").tobytes()

    def scales_of(self, values):
        """Return the quantization of an int8 tensor with these scales, one or one for each row."""
        return self.schema.QuantizationParametersT(
            scale=np.asarray(values, "float32"), zeroPoint=np.zeros(len(values), "int64")
        )

    def constant(self, graph, value):
        """Return the number of a new constant tensor: of floats, int32 or bool."""
        value, types = np.ascontiguousarray(value), self.schema.TensorType
        self.model.buffers.append(self.schema.BufferT(np.frombuffer(value.tobytes(), "uint8")))
        tensor = self.schema.TensorT(
            shape=np.asarray(value.shape, "int32"),
            type=getattr(types, str(value.dtype).upper()),
            buffer=len(self.model.buffers) - 1,
            hasRank=True,
        )
        return add_tensor(graph, tensor)

    def _code_index(self, kind):
        codes, code = self.model.operatorCodes, getattr(self.schema.BuiltinOperator, kind)
        known = [entry.builtinCode for entry in codes]
        if code not in known:
            codes.append(self.schema.OperatorCodeT(min(code, 127), None, 1, code))
        return [*known, code].index(code)


def get_shape(tensor):
    """Return the shape as a tuple of ints; an axis of any size is 1 there."""
    return () if tensor.shape is None else tuple(map(int, tensor.shape))


def list_readers(graph, tensor):
    """Return the operators that take the tensor."""
    return [operator for operator in graph.operators if tensor in operator.inputs]


def add_tensor(graph, tensor):
    """Return the number of a new tensor."""
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def replace_operator(graph, operator, *others):
    """Puts `others` in the place of an operator."""
    place = next(i for i, x in enumerate(graph.operators) if x is operator)
    graph.operators[place : place + 1] = others
