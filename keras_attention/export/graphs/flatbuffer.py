"""Read LiteRT files as plain records, or as objects that can be changed."""

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

# Names of options that cannot be derived by capitalizing the name of the operator.
_OPTIONS = {"STRIDED_SLICE": "StridedSliceOptions", "BATCH_MATMUL": "BatchMatMulOptions"}


@dataclasses.dataclass(frozen=True)
class Stored(Tensor):
    """A tensor in the graph of a LiteRT file.

    `constant` is the number of bytes of a constant, and 0 for a tensor that an operator computes.
    `buffer` is the index of the buffer in the file that stores the constant. `block_size` is the
    number of neighboring values with the same scale, and 0 if a constant has no blocks.
    """

    constant: int
    buffer: int
    block_size: int = 0

    @property
    def elements(self):
        return math.prod(axis or 1 for axis in self.shape)


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator in the graph of a LiteRT file, with its type (`kind`), inputs and outputs.

    `custom` is True for an operator that is not built in. `masked` is True for a STRIDED_SLICE that
    removes or adds axes.
    """

    kind: str
    custom: bool
    inputs: tuple[Stored, ...]
    outputs: tuple[Stored, ...]
    masked: bool

    @property
    def dtypes(self):
        """Return the set of the dtypes of all outputs."""
        return {tensor.dtype for tensor in self.outputs}

    @property
    def name(self):
        """Return the name of the first output, which contains the names of layers."""
        return self.outputs[0].name if self.outputs else ""


@dataclasses.dataclass(frozen=True)
class Flatbuffer:
    """The content of a LiteRT file, which may have several graphs.

    Attributes:
        signatures, tensors, operators: tuples with the signatures, tensors and operators of all
            graphs in the file.
        shared: dict from the name of a signature to the names of its outputs that share a tensor
            with another output, an input or a constant.
        first_inputs: dict from the name of each input of the first signature to its tensor.
        runtime: str, the oldest version of TensorFlow Lite that supports all ops, as recorded in
            the file. None if it is not recorded.
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
        """Return a tuple of the constant tensors, one for each buffer."""
        return tuple({t.buffer: t for t in self.tensors if t.constant}.values())


# Cache of the graphs that were read last, keyed by the digest of the content. An export reads its
# file a dozen times, and reading a graph that generates text takes longer than running it.
_LAST_READ = {}
_MOST_READ = 8


def read_graph(path):
    """Read a LiteRT file without copying the weights, and return a `Flatbuffer`.

    A `Flatbuffer` has the operators and tensors of the file.

    Raises:
        ValueError: the file is damaged.
    """
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
        # An invalid offset raises one of these.
        raise ValueError(
            f"{path} is damaged. Its graph cannot be read. Export it again."
        ) from error


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
        block_size = self.block_size(entry.Quantization())
        return Stored(_text(entry.Name()), shape, dtype, constant, entry.Buffer(), block_size)

    def block_size(self, quantization):
        blockwise = self.schema.QuantizationDetails.BlockwiseQuantization
        if quantization is None or quantization.DetailsType() != blockwise:
            return 0
        details, table = self.schema.BlockwiseQuantization(), quantization.Details()
        details.Init(table.Bytes, table.Pos)
        return details.BlockSize()

    def operator(self, entry, stored):
        code = self.model.OperatorCodes(entry.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        custom = number == self.schema.BuiltinOperator.CUSTOM
        inputs = [entry.Inputs(i) for i in range(entry.InputsLength())]
        return Operator(
            _text(code.CustomCode()) if custom else self.kinds[number],
            custom,
            tuple(stored[i] for i in inputs if i >= 0),  # -1 is a missing optional input
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
    """Yield (name, list of the names of shared outputs) for each signature.

    An output is shared if its tensor is also another output, an input or a constant.

    Args:
        model: `Model` of the flatbuffer schema.
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
    """Return the indices in the list `tensors` of tensors that repeat, or that no op computes.

    `written` is a set of the tensors that ops compute.
    """
    return [k for k, x in enumerate(tensors) if x not in written or x in tensors[:k]]


class GraphFile:
    """A LiteRT file that can be changed. Operators refer to tensors by their index in the graph.

    Args:
        content: bytes, the content of the file.
    """

    def __init__(self, content):
        self.schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.model = self.schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
        self.graphs = self.model.subgraphs
        self.kinds = _list_names(self.schema.BuiltinOperator)

    def content(self):
        """Return the content of the changed file as bytes."""
        builder = importlib.import_module("flatbuffers").Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def kind(self, operator):
        """Return the type of an operator, such as `"GATHER"`."""
        return self.kinds[self.model.operatorCodes[operator.opcodeIndex].builtinCode]

    def of_kind(self, kind, operators):
        """Return the operators in a list that have the type `kind`."""
        codes, code = self.model.operatorCodes, getattr(self.schema.BuiltinOperator, kind)
        return [x for x in operators if codes[x.opcodeIndex].builtinCode == code]

    def operator(self, kind, inputs, output, **options):
        """Return a new operator of type `kind` with one output.

        `kind` is a name of the flatbuffer schema, such as `"ADD"`. `inputs` and `output` are
        indices of tensors in the graph. `options` are attributes of the operator's options table in
        the schema.
        """
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

    def require(self, kind, version):
        """Let all operators of type `kind` require a version of the operator, or a later one."""
        code = getattr(self.schema.BuiltinOperator, kind)
        for entry in self.model.operatorCodes:
            if entry.builtinCode == code:
                entry.version = max(entry.version, version)

    def value(self, tensor):
        """Return the values of `tensor`, a float16, float32 or int32 constant, else None."""
        types, data = self.schema.TensorType, self.bytes_of(tensor)
        dtypes = ("float16", "float32", "int32")
        dtype = {getattr(types, name.upper()): name for name in dtypes}.get(tensor.type)
        if not data or dtype is None:
            return None
        return np.frombuffer(data, dtype).reshape(get_shape(tensor))

    def bytes_of(self, tensor):
        """Return the stored bytes of a constant tensor. They are empty for other tensors."""
        data = self.model.buffers[tensor.buffer].data
        return b"" if data is None else np.asarray(data, "uint8").tobytes()

    def scales_of(self, values):
        """Return the entry `quantization` of an int8 tensor in the file, with zero points of 0.

        `values` are the scales: one for the whole tensor, or one for each row.
        """
        return self.schema.QuantizationParametersT(
            scale=np.asarray(values, "float32"), zeroPoint=np.zeros(len(values), "int64")
        )

    def constant(self, graph, value):
        """Add a constant tensor with the values `value`, and return the index of the tensor.

        `value` is an array of floats, int32 or bool. `graph` is one of the file's graphs.
        """
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
        numbers = [entry.builtinCode for entry in codes]
        if code not in numbers:
            codes.append(self.schema.OperatorCodeT(min(code, 127), None, 1, code))
        return [*numbers, code].index(code)


def get_shape(tensor):
    """Return the shape of a tensor as a tuple of int, with 1 for dynamic axes."""
    return () if tensor.shape is None else tuple(map(int, tensor.shape))


def list_readers(graph, tensor):
    """Return a list of the operators in a graph that read the tensor with the index `tensor`."""
    return [operator for operator in graph.operators if tensor in operator.inputs]


def add_tensor(graph, tensor):
    """Add a tensor to a graph, and return the index of the tensor."""
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def replace_operator(graph, operator, *new):
    """Replace an operator in a graph by the operators `new`."""
    index = next(i for i, x in enumerate(graph.operators) if x is operator)
    graph.operators[index : index + 1] = new
