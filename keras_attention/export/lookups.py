"""Embedding tables in int8 files: kept once, and turned into floats row by row."""

import copy
import importlib

import numpy as np


def compact(content):
    """The LiteRT file `content` with smaller lookups.

    The converter rounds an embedding table with one scale for all of it, and for loops it turns
    the whole table into floats first, four times its size. Where the table is tied to the logits
    it rounds it once more for the product, with a scale for each row. Here rows are looked up as
    int8 and become floats afterwards, and tied tables are read where the product has them, with
    its finer scales.

    Args:
        content: bytes of a file whose weights are int8.

    Returns:
        bytes.
    """
    file = _File(content)
    for graph in file.graphs:
        file.take_tables_into_loops(graph)
    for graph in file.graphs:
        file.look_up_before_floats(graph)
    products = file.tables_of_products()
    for graph in file.graphs:
        file.share_tables(graph, products)
    file.drop_what_nothing_reads()
    return file.content()


class _File:
    """A LiteRT file as objects of its schema; operators name the tensors of a graph by number."""

    def __init__(self, content):
        self.schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.model = self.schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
        self.graphs = self.model.subgraphs
        self.scales = {}  # of a product's buffer: the buffer of its scales

    def content(self):
        builder = importlib.import_module("flatbuffers").Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def take_tables_into_loops(self, graph):
        """Floats of a table that a loop is given are made of the table inside."""
        for dequantize, table in self._tables_made_floats(graph):
            floats = dequantize.outputs[0]
            for loop in self._of_kind("WHILE", _readers(graph, floats)):
                self._take_into(loop, list(loop.inputs).index(floats), graph, table)

    def _take_into(self, loop, place, graph, table):
        body = self.graphs[loop.builtinOptions.bodySubgraphIndex]
        changes, after = body.inputs[place] != body.outputs[place], loop.outputs[place]
        if changes or after in graph.outputs or _readers(graph, after):
            return
        for part in (self.graphs[loop.builtinOptions.condSubgraphIndex], body):
            floats = part.inputs[place]
            part.inputs = np.delete(part.inputs, place)
            if _readers(part, floats):
                here = _add(part, copy.copy(table))
                part.operators.insert(0, self._operator("DEQUANTIZE", [here], floats))
        body.outputs = np.delete(body.outputs, place)
        loop.inputs, loop.outputs = np.delete(loop.inputs, place), np.delete(loop.outputs, place)

    def look_up_before_floats(self, graph):
        """Rows of a table's floats become the floats of its rows."""
        for dequantize, table in self._tables_made_floats(graph):
            for gather in self._gathers(_readers(graph, dequantize.outputs[0])):
                ids, floats = gather.inputs[1], gather.outputs[0]
                rows = copy.copy(graph.tensors[floats])
                rows.type, rows.quantization = table.type, table.quantization
                rows = _add(graph, rows)
                found = self._operator("GATHER", [dequantize.inputs[0], ids], rows)
                _replace(graph, gather, found, self._operator("DEQUANTIZE", [rows], floats))

    def tables_of_products(self):
        """Tensors of int8 weights with a scale for each row, one for each buffer."""
        weights = (
            graph.tensors[operator.inputs[1]]
            for graph in self.graphs
            for operator in self._of_kind("FULLY_CONNECTED", graph.operators)
        )
        products = {x.buffer: x for x in weights if self._is_int8(x) and len(_scales(x)) > 1}
        return list(products.values())

    def share_tables(self, graph, products):
        """Rows of a table that is a product's, too, are read there."""
        for gather in self._gathers(graph.operators):
            table, (rows,) = graph.tensors[gather.inputs[0]], gather.outputs
            readers = _readers(graph, rows)
            product = next((x for x in products if self._are_the_same(table, x)), None)
            if product is None or self._of_kind("DEQUANTIZE", readers) != readers:
                continue
            int8 = copy.copy(product)
            int8.quantization = graph.tensors[rows].quantization = None
            scale = _add(graph, self._scales_of_rows(product))
            factor = copy.copy(graph.tensors[readers[0].outputs[0]])
            factor.shape = _with_last(factor.shape, 1)
            factor.shapeSignature = _with_last(factor.shapeSignature, 1)
            factor = _add(graph, factor)
            _replace(
                graph,
                gather,
                self._operator("GATHER", [_add(graph, int8), gather.inputs[1]], rows),
                self._operator("GATHER", [scale, gather.inputs[1]], factor),
            )
            for dequantize in readers:
                (floats,) = dequantize.outputs
                numbers = _add(graph, copy.copy(graph.tensors[floats]))
                cast = self._operator("CAST", [rows], numbers)
                _replace(graph, dequantize, cast, self._operator("MUL", [numbers, factor], floats))

    def drop_what_nothing_reads(self):
        """Floats of tables, and tensors and their values."""
        for number, graph in enumerate(self.graphs):
            for dequantize, _ in self._tables_made_floats(graph):
                if not _readers(graph, dequantize.outputs[0]):
                    _replace(graph, dequantize)
            signatures = [x for x in self.model.signatureDefs if x.subgraphIndex == number]
            _number_anew(graph, [x for s in signatures for x in (*s.inputs, *s.outputs)])
        read = {tensor.buffer for graph in self.graphs for tensor in graph.tensors}
        read |= {entry.buffer for entry in self.model.metadata or ()}
        for number, buffer in enumerate(self.model.buffers):
            if number not in read:
                buffer.data = None

    def _tables_made_floats(self, graph):
        """Operators DEQUANTIZE of whole tables, and these."""
        found = self._of_kind("DEQUANTIZE", graph.operators)
        found = [(operator, graph.tensors[operator.inputs[0]]) for operator in found]
        return [(operator, table) for operator, table in found if self._is_table(table)]

    def _gathers(self, operators):
        """Those that look rows up."""
        found = self._of_kind("GATHER", operators)
        options = [operator.builtinOptions for operator in found]
        return [x for x, o in zip(found, options, strict=True) if o.axis == o.batchDims == 0]

    def _is_table(self, tensor):
        """Whether it is a constant matrix of int8 with one scale."""
        if not self._is_int8(tensor) or len(_scales(tensor)) != 1:
            return False
        return not np.any(tensor.quantization.zeroPoint)

    def _is_int8(self, tensor):
        data = self.model.buffers[tensor.buffer].data
        is_int8 = tensor.type == self.schema.TensorType.INT8
        return is_int8 and data is not None and len(tensor.shape) == 2

    def _are_the_same(self, table, product):
        """Whether both are the same numbers, each rounded with its own scales."""
        if not self._is_table(table) or list(table.shape) != list(product.shape):
            return False
        if product.quantization.quantizedDimension != 0:
            return False
        scale, scales = _scales(table), _scales(product)[:, None]
        first, second = (
            self.model.buffers[x.buffer].data.view("int8").reshape(x.shape)
            for x in (table, product)
        )
        parts = [slice(i, i + 1024) for i in range(0, len(first), 1024)]  # little memory
        return all(
            (np.abs(first[i] * scale - second[i] * scales[i]) <= 0.51 * (scale + scales[i])).all()
            for i in parts
        )

    def _scales_of_rows(self, product):
        """A tensor (rows, 1) of float32 constants, whose buffer every lookup shares."""
        values = _scales(product)[:, None]
        if product.buffer not in self.scales:
            self.scales[product.buffer] = len(self.model.buffers)
            self.model.buffers.append(self.schema.BufferT(np.frombuffer(values.tobytes(), "uint8")))
        return self.schema.TensorT(
            shape=np.asarray(values.shape, "int32"),
            type=self.schema.TensorType.FLOAT32,
            buffer=self.scales[product.buffer],
            hasRank=True,
        )

    def _code(self, kind):
        return getattr(self.schema.BuiltinOperator, kind)

    def _of_kind(self, kind, operators):
        codes = self.model.operatorCodes
        return [x for x in operators if codes[x.opcodeIndex].builtinCode == self._code(kind)]

    def _operator(self, kind, inputs, output):
        name = f"{kind.capitalize()}Options"
        return self.schema.OperatorT(
            opcodeIndex=self._code_index(kind),
            inputs=np.asarray(inputs, "int32"),
            outputs=np.asarray([output], "int32"),
            builtinOptionsType=getattr(self.schema.BuiltinOptions, name),
            builtinOptions=getattr(self.schema, f"{name}T")(),
        )

    def _code_index(self, kind):
        codes, code = self.model.operatorCodes, self._code(kind)
        known = [entry.builtinCode for entry in codes]
        if code not in known:
            codes.append(self.schema.OperatorCodeT(min(code, 127), None, 1, code))
        return [*known, code].index(code)


def _scales(tensor):
    found = None if tensor.quantization is None else tensor.quantization.scale
    return np.asarray([] if found is None else found, "float32")


def _readers(graph, tensor):
    """The operators that take the tensor."""
    return [operator for operator in graph.operators if tensor in operator.inputs]


def _add(graph, tensor):
    """The number of a new tensor."""
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _replace(graph, operator, *others):
    place = next(i for i, x in enumerate(graph.operators) if x is operator)
    graph.operators[place : place + 1] = others


def _with_last(shape, last):
    return None if shape is None else np.asarray([*shape[:-1], last], "int32")


def _number_anew(graph, entries):
    """Numbers the tensors that are read or written; `entries` of signatures name them, too."""
    lists = [graph.inputs, graph.outputs]
    lists += [x for op in graph.operators for x in (op.inputs, op.outputs, op.intermediates)]
    lists = [x for x in lists if x is not None]
    named = sorted({int(i) for numbers in lists for i in numbers if i >= 0})
    new = {old: i for i, old in enumerate(named)} | {-1: -1}
    graph.tensors = [graph.tensors[i] for i in named]

    def renamed(numbers):
        return None if numbers is None else np.asarray([new[int(i)] for i in numbers], "int32")

    graph.inputs, graph.outputs = renamed(graph.inputs), renamed(graph.outputs)
    for op in graph.operators:
        op.inputs, op.outputs = renamed(op.inputs), renamed(op.outputs)
        op.intermediates = renamed(op.intermediates)
    for entry in entries:
        entry.tensorIndex = new[int(entry.tensorIndex)]
