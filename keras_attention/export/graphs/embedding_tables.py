"""Int8 embedding tables, stored once: a translator takes 6.1 MB, by ai-edge-quantizer 24.4 MB.

Its version 0.10.0 leaves tables that rows are looked up in as floats, and stores a table once for
each signature. The translator is `multi30k-de-en` with `generate`, which takes 20.3 MB in float32.
"""

import copy

import numpy as np

from keras_attention.export.graphs.flatbuffer import (
    GraphFile,
    add_tensor,
    list_readers,
    replace_operator,
)


def compact_tables(content, weights=()):
    """Return the LiteRT file `content` with smaller and finer lookups.

    The converter gives an embedding table one scale, and for loops it turns the whole table into
    floats first, four times its size. It stores a table that is tied to the logits twice, the
    second time for the product, with a scale for each row. In the result, rows are looked up as
    int8 and become floats afterwards, and every row has a scale: a tied table is the product's,
    another is rounded anew.

    Args:
        content: bytes of a file whose weights are int8.
        weights: list of float arrays or variables (rows, H), of which tables are rounded anew.

    Returns:
        bytes.
    """
    file = _TableFile(content)
    for graph in file.graphs:
        file.take_tables_into_loops(graph)
    for graph in file.graphs:
        file.look_up_before_floats(graph)
    products = file.list_product_tables()
    for graph in file.graphs:
        file.share_tables(graph, products)
    finer = file.list_finer_tables(weights)
    for graph in file.graphs:
        file.share_tables(graph, finer)
    file.drop_unread()
    return file.content()


class _TableFile(GraphFile):
    def __init__(self, content):
        super().__init__(content)
        self.scales = {}  # buffer of a product -> buffer of its scales

    def take_tables_into_loops(self, graph):
        """Turns tables into floats inside of loops, which are given the floats otherwise."""
        for dequantize, table in self._list_float_tables(graph):
            floats = dequantize.outputs[0]
            for loop in self.of_kind("WHILE", list_readers(graph, floats)):
                self._take_into(loop, list(loop.inputs).index(floats), graph, table)

    def _take_into(self, loop, place, graph, table):
        body = self.graphs[loop.builtinOptions.bodySubgraphIndex]
        changes, after = body.inputs[place] != body.outputs[place], loop.outputs[place]
        if changes or after in graph.outputs or list_readers(graph, after):
            return
        for part in (self.graphs[loop.builtinOptions.condSubgraphIndex], body):
            floats = part.inputs[place]
            part.inputs = np.delete(part.inputs, place)
            if list_readers(part, floats):
                here = add_tensor(part, copy.copy(table))
                part.operators.insert(0, self.operator("DEQUANTIZE", [here], floats))
        body.outputs = np.delete(body.outputs, place)
        loop.inputs, loop.outputs = np.delete(loop.inputs, place), np.delete(loop.outputs, place)

    def look_up_before_floats(self, graph):
        """Looks rows up first, and turns them into floats afterwards."""
        for dequantize, table in self._list_float_tables(graph):
            for gather in self._list_gathers(list_readers(graph, dequantize.outputs[0])):
                ids, floats = gather.inputs[1], gather.outputs[0]
                rows = copy.copy(graph.tensors[floats])
                rows.type, rows.quantization = table.type, table.quantization
                rows = add_tensor(graph, rows)
                found = self.operator("GATHER", [dequantize.inputs[0], ids], rows)
                replace_operator(graph, gather, found, self.operator("DEQUANTIZE", [rows], floats))

    def list_product_tables(self):
        """Int8 weights of products with a scale for each row: a list of tensors, one per buffer."""
        weights = (
            graph.tensors[operator.inputs[1]]
            for graph in self.graphs
            for operator in self.of_kind("FULLY_CONNECTED", graph.operators)
        )
        products = {x.buffer: x for x in weights if self._is_int8(x) and len(_scales(x)) > 1}
        return list(products.values())

    def list_finer_tables(self, weights):
        """Tables that are looked up, rounded anew with a scale for each row: a list of tensors."""
        found = {}
        for graph in self.graphs:
            for gather in self._list_gathers(graph.operators):
                table = graph.tensors[gather.inputs[0]]
                if table.buffer in found or not self._is_table(table):
                    continue
                same = (w for w in weights if tuple(w.shape) == tuple(table.shape))
                found[table.buffer] = next(
                    filter(None, (self._refine(table, w) for w in same)), None
                )
        return [tensor for tensor in found.values() if tensor is not None]

    def _refine(self, table, weight):
        """A tensor of `weight` in int8 with a scale for each row; None where `table` is another."""
        values = np.asarray(weight, "float32")
        number, numbers, scales = len(self.model.buffers), *round_rows(values)
        tensor = copy.copy(table)
        tensor.buffer = number
        tensor.quantization = self.scales_of(scales)
        self.model.buffers.append(self.schema.BufferT(numbers.reshape(-1).view("uint8")))
        if self._hold_same_numbers(table, tensor):
            return tensor
        self.model.buffers.pop()
        return None

    def share_tables(self, graph, products):
        """Looks rows of a table up in the weights of `products` that hold the same numbers."""
        for gather in self._list_gathers(graph.operators):
            table, (rows,) = graph.tensors[gather.inputs[0]], gather.outputs
            following = list_readers(graph, rows)
            product = next((x for x in products if self._hold_same_numbers(table, x)), None)
            if product is None or self.of_kind("DEQUANTIZE", following) != following:
                continue
            int8 = copy.copy(product)
            # The scale of numbers that stand for themselves: GPU delegates crash without one.
            int8.quantization = graph.tensors[rows].quantization = self.scales_of(np.ones(1))
            scale = add_tensor(graph, self._make_row_scales(product))
            factor = copy.copy(graph.tensors[following[0].outputs[0]])
            factor.shape = _set_last_axis(factor.shape, 1)
            factor.shapeSignature = _set_last_axis(factor.shapeSignature, 1)
            factor = add_tensor(graph, factor)
            replace_operator(
                graph,
                gather,
                self.operator("GATHER", [add_tensor(graph, int8), gather.inputs[1]], rows),
                self.operator("GATHER", [scale, gather.inputs[1]], factor),
            )
            for dequantize in following:
                (floats,) = dequantize.outputs
                numbers = add_tensor(graph, copy.copy(graph.tensors[floats]))
                same = self.operator("DEQUANTIZE", [rows], numbers)
                replace_operator(
                    graph, dequantize, same, self.operator("MUL", [numbers, factor], floats)
                )

    def drop_unread(self):
        """Drops what nothing reads: floats of tables, tensors, and their values."""
        for number, graph in enumerate(self.graphs):
            for dequantize, _ in self._list_float_tables(graph):
                if not list_readers(graph, dequantize.outputs[0]):
                    replace_operator(graph, dequantize)
            signatures = [x for x in self.model.signatureDefs if x.subgraphIndex == number]
            _renumber_tensors(graph, [x for s in signatures for x in (*s.inputs, *s.outputs)])
        read = {tensor.buffer for graph in self.graphs for tensor in graph.tensors}
        read |= {entry.buffer for entry in self.model.metadata or ()}
        for number, buffer in enumerate(self.model.buffers):
            if number not in read:
                buffer.data = None

    def _list_float_tables(self, graph):
        """Pairs of an operator DEQUANTIZE and the whole table that it takes."""
        found = self.of_kind("DEQUANTIZE", graph.operators)
        found = [(operator, graph.tensors[operator.inputs[0]]) for operator in found]
        return [(operator, table) for operator, table in found if self._is_table(table)]

    def _list_gathers(self, operators):
        """Those of `operators` that look rows up."""
        found = self.of_kind("GATHER", operators)
        options = [operator.builtinOptions for operator in found]
        return [x for x, o in zip(found, options, strict=True) if o.axis == o.batchDims == 0]

    def _is_table(self, tensor):
        """Return whether it is a constant matrix of int8 with one scale."""
        if not self._is_int8(tensor) or len(_scales(tensor)) != 1:
            return False
        return not np.any(tensor.quantization.zeroPoint)

    def _is_int8(self, tensor):
        data = self.model.buffers[tensor.buffer].data
        is_int8 = tensor.type == self.schema.TensorType.INT8
        return is_int8 and data is not None and len(tensor.shape) == 2

    def _hold_same_numbers(self, table, product):
        """Return whether both are the same numbers, each rounded with its own scales."""
        if not self._is_table(table) or list(table.shape) != list(product.shape):
            return False
        if product.quantization.quantizedDimension != 0:
            return False
        scale, scales = _scales(table), _scales(product)[:, None]
        first, second = (
            self.model.buffers[x.buffer].data.view("int8").reshape(x.shape)
            for x in (table, product)
        )
        parts = [
            slice(i, i + 1024) for i in range(0, len(first), 1024)
        ]  # in parts, to need little memory
        return all(
            (np.abs(first[i] * scale - second[i] * scales[i]) <= 0.51 * (scale + scales[i])).all()
            for i in parts
        )

    def _make_row_scales(self, product):
        """Return a tensor (rows, 1) of float32 constants, whose buffer every lookup shares."""
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


def round_rows(values):
    """Floats (rows, H) as int8 with a scale for each row: `(numbers, scales)`, of shape (rows,)."""
    scales = np.abs(values).max(1) / 127
    scales[scales == 0] = 1.0
    return np.rint(values / scales[:, None]).astype("int8"), scales


def _scales(tensor):
    found = None if tensor.quantization is None else tensor.quantization.scale
    return np.asarray([] if found is None else found, "float32")


def _set_last_axis(shape, last):
    return None if shape is None else np.asarray([*shape[:-1], last], "int32")


def _renumber_tensors(graph, entries):
    """Drops tensors that nothing reads or writes; `entries` of signatures name some, too."""
    lists = [graph.inputs, graph.outputs]
    lists += [x for op in graph.operators for x in (op.inputs, op.outputs, op.intermediates)]
    lists = [x for x in lists if x is not None]
    named = sorted({int(i) for numbers in lists for i in numbers if i >= 0})
    new = {old: i for i, old in enumerate(named)} | {-1: -1}
    graph.tensors = [graph.tensors[i] for i in named]

    def renumber(numbers):
        return None if numbers is None else np.asarray([new[int(i)] for i in numbers], "int32")

    graph.inputs, graph.outputs = renumber(graph.inputs), renumber(graph.outputs)
    for op in graph.operators:
        op.inputs, op.outputs = renumber(op.inputs), renumber(op.outputs)
        op.intermediates = renumber(op.intermediates)
    for entry in entries:
        entry.tensorIndex = new[int(entry.tensorIndex)]
