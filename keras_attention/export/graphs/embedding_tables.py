"""Store int8 embedding tables only once in a LiteRT file.

The file of the translator `multi30k-de-en` with `generate` then has 6.1 MB (20.3 MB in float32).
The file that ai-edge-quantizer 0.10.0 makes has 24.4 MB, because this tool keeps embedding tables
in float32, and stores a table once for each signature.
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
    """Make the embedding tables in a LiteRT file smaller and more accurate.

    The converter uses one scale for a whole embedding table, and stores a table that is tied to the
    logits twice, the second time with a scale for each row. If the file has a loop, it converts
    whole tables to floats before the loop, which takes four times the memory. In the result of this
    function, rows are looked up as int8, and only these rows are converted to floats. A tied table
    is stored once, with a scale for each row. Tables that `weights` contains are quantized again,
    with a scale for each row. Others keep their scale.

    Args:
        content: bytes, the content of a file with int8 weights.
        weights: list of float arrays or variables (rows, H), the embedding tables of the model. A
            table in the file is found by its values.

    Returns:
        bytes, the new content.
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
        self.scales = {}  # number of the buffer of a weight -> number of the buffer of its scales

    def take_tables_into_loops(self, graph):
        """Move conversions of int8 tables to floats into the loops that read the floats.

        `graph` is one of the file's graphs. The loop then gets the int8 table, which is a quarter
        as large.
        """
        for dequantize, table in self._list_float_tables(graph):
            floats = dequantize.outputs[0]
            for loop in self.of_kind("WHILE", list_readers(graph, floats)):
                self._take_into(loop, list(loop.inputs).index(floats), graph, table)

    def _take_into(self, loop, index, graph, table):
        body = self.graphs[loop.builtinOptions.bodySubgraphIndex]
        changes, after = body.inputs[index] != body.outputs[index], loop.outputs[index]
        if changes or after in graph.outputs or list_readers(graph, after):
            return
        for part in (self.graphs[loop.builtinOptions.condSubgraphIndex], body):
            floats = part.inputs[index]
            part.inputs = np.delete(part.inputs, index)
            if list_readers(part, floats):
                copied = add_tensor(part, copy.copy(table))
                part.operators.insert(0, self.operator("DEQUANTIZE", [copied], floats))
        body.outputs = np.delete(body.outputs, index)
        loop.inputs, loop.outputs = np.delete(loop.inputs, index), np.delete(loop.outputs, index)

    def look_up_before_floats(self, graph):
        """Let a graph look up int8 rows and convert these to floats, instead of whole tables."""
        for dequantize, table in self._list_float_tables(graph):
            for gather in self._list_gathers(list_readers(graph, dequantize.outputs[0])):
                ids, floats = gather.inputs[1], gather.outputs[0]
                rows = copy.copy(graph.tensors[floats])
                rows.type, rows.quantization = table.type, table.quantization
                rows = add_tensor(graph, rows)
                lookup = self.operator("GATHER", [dequantize.inputs[0], ids], rows)
                floats = self.operator("DEQUANTIZE", [rows], floats)
                replace_operator(graph, gather, lookup, floats)

    def list_product_tables(self):
        """Return the int8 weights of matrix products that have a scale for each row.

        The result is a list of tensors with different buffers.
        """
        weights = (
            graph.tensors[operator.inputs[1]]
            for graph in self.graphs
            for operator in self.of_kind("FULLY_CONNECTED", graph.operators)
        )
        products = {x.buffer: x for x in weights if self._is_int8(x) and len(_scales(x)) > 1}
        return list(products.values())

    def list_finer_tables(self, weights):
        """Quantize the embedding tables again, with a scale for each row.

        Return a list of the new tensors. Tables whose values are in none of `weights` are left out.
        """
        tables = {}
        for graph in self.graphs:
            for gather in self._list_gathers(graph.operators):
                table = graph.tensors[gather.inputs[0]]
                if table.buffer in tables or not self._is_table(table):
                    continue
                same = (w for w in weights if tuple(w.shape) == tuple(table.shape))
                refined = filter(None, (self._refine(table, w) for w in same))
                tables[table.buffer] = next(refined, None)
        return [tensor for tensor in tables.values() if tensor is not None]

    def _refine(self, table, weight):
        """Quantize a float weight to a new int8 tensor with a scale for each row.

        Return None if the existing tensor `table` does not contain the same values as `weight`.
        """
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
        """Replace the table of a lookup by a tensor of `products` that has the same values.

        `graph` is one of the file's graphs. `products` are int8 tensors with a scale for each row,
        so that a table is stored once.
        """
        for gather in self._list_gathers(graph.operators):
            table, (rows,) = graph.tensors[gather.inputs[0]], gather.outputs
            following = list_readers(graph, rows)
            product = next((x for x in products if self._hold_same_numbers(table, x)), None)
            if product is None or self.of_kind("DEQUANTIZE", following) != following:
                continue
            int8 = copy.copy(product)
            # A scale of 1 does not change the values. GPU delegates crash without a scale.
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
        """Remove operators, tensors and buffers that are not used."""
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
        """Return a list of (DEQUANTIZE operator, the whole table that it converts)."""
        operators = self.of_kind("DEQUANTIZE", graph.operators)
        pairs = [(operator, graph.tensors[operator.inputs[0]]) for operator in operators]
        return [(operator, table) for operator, table in pairs if self._is_table(table)]

    def _list_gathers(self, operators):
        """Return the operators in a list that look up rows of a table."""
        gathers = self.of_kind("GATHER", operators)
        options = [operator.builtinOptions for operator in gathers]
        return [x for x, o in zip(gathers, options, strict=True) if o.axis == o.batchDims == 0]

    def _is_table(self, tensor):
        """Return whether a tensor is a constant int8 matrix with one scale."""
        if not self._is_int8(tensor) or len(_scales(tensor)) != 1:
            return False
        return not np.any(tensor.quantization.zeroPoint)

    def _is_int8(self, tensor):
        data = self.model.buffers[tensor.buffer].data
        is_int8 = tensor.type == self.schema.TensorType.INT8
        return is_int8 and data is not None and len(tensor.shape) == 2

    def _hold_same_numbers(self, table, product):
        """Return whether two int8 tensors represent the same values, up to rounding.

        `table` has one scale, and `product` has a scale for each row.
        """
        if not self._is_table(table) or list(table.shape) != list(product.shape):
            return False
        if product.quantization.quantizedDimension != 0:
            return False
        scale, scales = _scales(table), _scales(product)[:, None]
        first, second = (
            self.model.buffers[x.buffer].data.view("int8").reshape(x.shape)
            for x in (table, product)
        )
        parts = [slice(i, i + 1024) for i in range(0, len(first), 1024)]  # saves memory
        return all(
            (np.abs(first[i] * scale - second[i] * scales[i]) <= 0.51 * (scale + scales[i])).all()
            for i in parts
        )

    def _make_row_scales(self, product):
        """Return a constant float32 tensor (rows, 1) with the scales of the int8 tensor `product`.

        If the function is called again for the same weight, both tensors share one buffer.
        """
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
    """Quantize floats (rows, H) to int8, and return (int8 values (rows, H), scales (rows,))."""
    scales = np.abs(values).max(1) / 127
    scales[scales == 0] = 1.0
    return np.rint(values / scales[:, None]).astype("int8"), scales


def _scales(tensor):
    scale = None if tensor.quantization is None else tensor.quantization.scale
    return np.asarray([] if scale is None else scale, "float32")


def _set_last_axis(shape, last):
    return None if shape is None else np.asarray([*shape[:-1], last], "int32")


def _renumber_tensors(graph, entries):
    """Remove unused tensors from a graph, and update all indices of the remaining tensors.

    `entries` are the inputs and outputs of signatures, which also contain such indices.
    """
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
