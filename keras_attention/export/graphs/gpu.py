"""Graphs of fixed shapes, rewritten so that GPU delegates run all of them, and run them right.

The operators that ai_edge_litert's delegate refuses, silently computes wrongly, or crashes on
were measured one by one; `tests/export/graphs/test_gpu.py` has a case for each. The CPU's numbers
stay, those of sine and cosine to 1e-6.
"""

import math

import numpy as np

from keras_attention.export.graphs.editor import GraphEditor, swap_last_axes
from keras_attention.export.graphs.flatbuffer import GraphFile

_UNARY = {
    *("ABS", "CAST", "DEQUANTIZE", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU"),
    *("LOG", "LOGISTIC", "NEG", "RELU", "RELU6", "RSQRT", "SQRT", "SQUARE", "TANH"),
}
_BINARY = {
    *("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "POW", "SQUARED_DIFFERENCE", "SUB"),
    *("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"),
    *("LOGICAL_AND", "LOGICAL_OR"),
}
_LOWEST = float(np.finfo("float32").min)
_LANES = 4  # columns that a GPU's vectors hold

# Of r² for r from -π to π, the lowest power first: sin(r) / r and cos(r), both to 6e-7.
_SINE = (1.0, -0.16666666, 8.3333217e-3, -1.9840534e-4, 2.753585e-6, -2.472881e-8, 1.3613e-10)
_COSINE = (1.0, -0.4999999, 4.1666489e-2, -1.3887803e-3, 2.4769883e-5, -2.7079029e-7, 1.7245e-9)
_TURN = 6.28125, 2 * math.pi - 6.28125  # the first times a whole number is exact in float32


def adapt_to_gpu(content):
    """Return the LiteRT file `content`; its graphs without a free shape are rewritten.

    Args:
        content: bytes.

    Returns:
        bytes; `content` itself where no graph is fixed.
    """
    file = GraphFile(content)
    signatures = [[tensor.shapeSignature for tensor in graph.tensors] for graph in file.graphs]
    fixed = [
        i for i, axes in enumerate(signatures) if not any(x is not None and -1 in x for x in axes)
    ]
    if not fixed:
        return content
    for i in fixed:
        named = [x for s in file.model.signatureDefs if s.subgraphIndex == i for x in s.outputs]
        _Rewriting(file, file.graphs[i], {entry.tensorIndex for entry in named}).run()
    return file.content()


class _Rewriting(GraphEditor):
    """One pass over the operators of a graph, in order; each is emitted, or others in its place."""

    def __init__(self, file, graph, outputs):
        super().__init__(file, graph, outputs)
        self.reduced = {}  # of an angle: what it is without whole turns, and the square of that
        self.joined = self.list_inputs("CONCATENATION")

    def run(self):
        for operator in self.graph.operators:
            operator.inputs = np.asarray(
                [self.same.get(int(i), int(i)) for i in operator.inputs], "int32"
            )
            kind = self.file.kind(operator)
            rule = getattr(self, f"_on_{kind.lower()}", None)
            if rule is None and kind in _UNARY:
                rule = self._unary
            if rule is None and kind in _BINARY:
                rule = self._binary
            (rule or self.emit)(operator)
        read = {int(i) for operator in self.emitted for i in operator.inputs} | self.outputs
        self.graph.operators = [x for x in self.emitted if read & set(map(int, x.outputs))]

    def _on_reshape(self, operator):
        x, y = int(operator.inputs[0]), int(operator.outputs[0])
        x = self.reshaped.get(x, x)
        if self.get_shape(x) == self.get_shape(y) and y not in self.outputs:
            self.same[y] = x
            return
        operator.inputs = np.asarray([x, *operator.inputs[1:]], "int32")
        self.reshaped[y] = x
        self.emit(operator)

    def _on_gather(self, operator):
        """Gives indices one axis, and looks rows up in a table as it is stored."""
        options, (table, ids) = operator.builtinOptions, operator.inputs
        shape, maker = self.get_shape(ids), self.makers.get(int(table))
        if options.batchDims:
            return self.emit(operator)
        axis, sizes = options.axis % len(self.get_shape(table)), list(self.get_shape(table))
        sizes[axis] = math.prod(shape)
        operator.inputs = np.asarray([table, self.reshape(ids, sizes[axis : axis + 1])], "int32")
        if maker is None or self.get_value(table) is None:
            return self.emit_and_reshape(operator, sizes)
        stored, types = int(maker.inputs[0]), self.file.schema.TensorType
        if self.graph.tensors[stored].type != types.FLOAT16:
            return self.emit_and_reshape(operator, sizes)
        rows, y = self.copy_tensor(stored, sizes), operator.outputs[0]
        operator.inputs = np.asarray([stored, operator.inputs[1]], "int32")
        operator.outputs = np.asarray([rows], "int32")
        self.emit(operator)
        dtypes = {"inDataType": types.FLOAT16, "outDataType": types.FLOAT32}
        self.emit_and_reshape(self.file.operator("CAST", [rows], y, **dtypes), sizes)

    def _on_strided_slice(self, operator):
        """Keeps an axis that is dropped, and drops it by a RESHAPE."""
        options = operator.builtinOptions
        bounds = [self.file.value(self.graph.tensors[i]) for i in operator.inputs[1:]]
        if (
            not options.shrinkAxisMask
            or options.newAxisMask
            or options.ellipsisMask
            or any(bound is None for bound in bounds)
        ):
            return self.emit(operator)
        begin, end, steps = bounds = [bound.copy() for bound in bounds]
        shape, kept = self.get_shape(operator.inputs[0]), []
        left = list(self.get_shape(operator.outputs[0]))
        for axis, size in enumerate(shape):
            dropped = axis < len(begin) and options.shrinkAxisMask >> axis & 1
            if dropped:
                begin[axis] %= size
                end[axis] = begin[axis] + 1
                steps[axis] = 1
            kept.append(1 if dropped else left.pop(0))
        for mask in ("beginMask", "endMask"):
            setattr(options, mask, getattr(options, mask) & ~options.shrinkAxisMask)
        options.shrinkAxisMask = 0
        constants = [self.file.constant(self.graph, bound) for bound in bounds]
        operator.inputs = np.asarray([operator.inputs[0], *constants], "int32")
        self.emit_and_reshape(operator, kept)

    def _on_split(self, operator):
        self._cut(operator, *operator.inputs[::-1])

    def _on_split_v(self, operator):
        self._cut(operator, operator.inputs[0], operator.inputs[2])

    def _cut(self, operator, x, axis):
        """Slices what is joined again: a delegate skips a SPLIT before a CONCATENATION."""
        axis = self.file.value(self.graph.tensors[axis])
        if axis is None or not self.joined & set(map(int, operator.outputs)):
            return self.emit(operator)
        shape, start = self.get_shape(x), 0
        axis = int(axis.reshape(())) % len(shape)
        for y in operator.outputs:
            size = self.get_shape(y)[axis]
            begin, end = np.zeros(len(shape), "int32"), np.asarray(shape, "int32")
            begin[axis], end[axis] = start, start + size
            bounds = [begin, end, np.ones(len(shape), "int32")]
            constants = [self.file.constant(self.graph, bound) for bound in bounds]
            self.emit(self.file.operator("STRIDED_SLICE", [x, *constants], y))
            start += size

    def _on_sin(self, operator):
        """A polynomial: the sine of a GPU is off by 1e-4 and, for large angles, by anything."""
        self._wave(operator, _SINE, odd=True)

    def _on_cos(self, operator):
        self._wave(operator, _COSINE, odd=False)

    def _wave(self, operator, factors, odd):
        x, y = int(operator.inputs[0]), int(operator.outputs[0])
        behind, flat = self.before_flattening(x), None
        if behind is not None:
            x, y, flat = behind, self.copy_tensor(y, self.get_shape(behind)), y
        angle, square = self._reduced(x)
        lowest, *others, highest = map(self.add_number, factors)
        value = highest
        for factor in reversed(others):
            value = self.combine("ADD", self.combine("MUL", square, value), factor)
        value = self.combine("MUL", square, value)
        if odd:
            self.combine("MUL", self.combine("ADD", value, lowest), angle, y)
        else:
            self.combine("ADD", value, lowest, y)
        if flat is not None:
            self.reshape_into(y, flat)

    def _reduced(self, x):
        """`x` without its whole turns, from -π to π, and its square; once for sine and cosine."""
        if x not in self.reduced:
            turns = self.combine("MUL", x, self.add_number(1 / (2 * math.pi)))
            turns = self.combine("ADD", turns, self.add_number(0.5))
            whole, angle = self.copy_tensor(x, self.get_shape(x)), x
            self.emit(self.file.operator("FLOOR", [turns], whole))
            for part in _TURN:
                less = self.combine("MUL", whole, self.add_number(part))
                angle = self.combine("SUB", angle, less)
            self.reduced[x] = angle, self.combine("MUL", angle, angle)
        return self.reduced[x]

    def _on_topk_v2(self, operator):
        """Pads columns to whole vectors: a delegate reads garbage behind the last one."""
        x = int(operator.inputs[0])
        shape, tensor = self.get_shape(x), self.graph.tensors[x]
        missing = -shape[-1] % _LANES
        if missing and tensor.type == self.file.schema.TensorType.FLOAT32:
            lowest = np.full((*shape[:-1], missing), _LOWEST, "float32")
            longer = self.copy_tensor(x, (*shape[:-1], shape[-1] + missing))
            parts = [x, self.file.constant(self.graph, lowest)]
            axis = len(shape) - 1
            self.emit(self.file.operator("CONCATENATION", parts, longer, axis=axis))
            operator.inputs = np.asarray([longer, operator.inputs[1]], "int32")
        self.emit(operator)

    def _on_cumsum(self, operator):
        """Sums along the second of three axes: along the last, sums are wrong or crash."""
        x, y = int(operator.inputs[0]), int(operator.outputs[0])
        shape, axis = self.get_shape(x), self.file.value(self.graph.tensors[operator.inputs[1]])
        if axis is None or len(shape) < 2 or int(axis.reshape(())) % len(shape) != len(shape) - 1:
            return self.emit(operator)
        size, rows = shape[-1], math.prod(shape[:-1])
        turned, sums = (self.copy_tensor(x, (1, size, rows)) for _ in range(2))
        back = self.copy_tensor(y, (1, rows, size))
        self.transpose(self.reshape(x, (1, rows, size)), turned, (0, 2, 1))
        second = self.file.constant(self.graph, np.asarray(1, "int32"))
        operator.inputs = np.asarray([turned, second], "int32")
        operator.outputs = np.asarray([sums], "int32")
        self.emit(operator)
        self.transpose(sums, back, (0, 2, 1))
        self.reshape_into(back, y)

    def _on_batch_matmul(self, operator):
        """Gives operands the same axes, and puts no constant on the left."""
        (a, b), (y,), options = operator.inputs, operator.outputs, operator.builtinOptions
        rank = len(self.get_shape(y))
        batch = self.get_shape(y)[:-2]
        if rank < 3 or self.is_quantized(a, b, y):
            return self.emit(operator)
        a, b = (self.repeat_over_batch(x, batch) for x in (a, b))
        if self.get_value(a) is not None and self.get_value(b) is None:
            left = b if options.adjY else self.transpose_last(b)
            right = a if options.adjX else self.transpose_last(a)
            options.adjX = options.adjY = False
            turned = self.copy_tensor(y, (*batch, *self.get_shape(y)[:-3:-1]))
            operator.inputs = np.asarray([left, right], "int32")
            operator.outputs = np.asarray([turned], "int32")
            self.emit(operator)
            return self.transpose(turned, y, swap_last_axes(rank))
        operator.inputs = np.asarray([a, b], "int32")
        self.emit(operator)

    def _on_fully_connected(self, operator):
        """Keeps the axes of the input, where its rows are no batch."""
        x, weights, *_ = map(int, operator.inputs)
        y = int(operator.outputs[0])
        shape, given = self.get_shape(x), self.get_shape(y)
        if shape[-1] != self.get_shape(weights)[-1] or len(given) != 2 or given[0] == 1:
            return self.emit(operator)
        if len(shape) == 2:
            behind = self.reshaped.get(x)
            if (
                behind is not None
                and 3 <= len(self.get_shape(behind))
                and (self.get_shape(behind)[-1] == shape[-1])
            ):
                x = behind
            else:
                x = self.reshape(x, (1, *shape))
            operator.inputs = np.asarray([x, *operator.inputs[1:]], "int32")
        operator.builtinOptions.keepNumDims = True
        self.emit_and_reshape(operator, (*self.get_shape(x)[:-1], given[-1]))

    def _on_pad(self, operator):
        """Pads at least three axes, of numbers: delegates pad no others."""
        x, widths = map(int, operator.inputs[:2])
        shape, around = self.get_shape(x), self.file.value(self.graph.tensors[widths])
        if self.graph.tensors[x].type == self.file.schema.TensorType.BOOL and around is not None:
            return self._join(operator, around)
        if len(shape) > 2 or around is None:
            return self.emit(operator)
        front = 3 - len(shape)
        around = np.concatenate([np.zeros((front, 2), "int32"), around])
        x = self.reshape(x, (1,) * front + shape)
        widths = self.file.constant(self.graph, around)
        operator.inputs = np.asarray([x, widths, *operator.inputs[2:]], "int32")
        self.emit_and_reshape(operator, (1,) * front + self.get_shape(operator.outputs[0]))

    def _join(self, operator, around):
        """Pads truth values by joining constants to them, one axis after the other."""
        x, filling = int(operator.inputs[0]), False
        if len(operator.inputs) > 2:
            filling = bool(self.file.bytes_of(self.graph.tensors[operator.inputs[2]])[0])
        for axis, sides in enumerate(around):
            shape = list(self.get_shape(x))
            parts = [self._filled(x, axis, size, filling) for size in sides]
            parts = [part for part in (parts[0], x, parts[1]) if part is not None]
            if len(parts) > 1:
                shape[axis] += int(sum(sides))
                x = self.copy_tensor(x, shape)
                self.emit(self.file.operator("CONCATENATION", parts, x, axis=axis))
        self.same[int(operator.outputs[0])] = x
        if int(operator.outputs[0]) in self.outputs:
            self.reshape_into(x, operator.outputs[0])

    def _filled(self, x, axis, size, filling):
        """Return a constant like a piece of `x`, `size` long along an axis, or None."""
        if not size:
            return None
        shape = list(self.get_shape(x))
        shape[axis] = int(size)
        return self.file.constant(self.graph, np.full(shape, filling))

    _on_padv2 = _on_pad

    def _unary(self, operator):
        behind = self.before_flattening(operator.inputs[0])
        if behind is None or len(operator.inputs) > 1:
            return self.emit(operator)
        operator.inputs = np.asarray([behind], "int32")
        self.emit_and_reshape(operator, self.get_shape(behind))

    def _binary(self, operator):
        """Gives operands the same number of axes: delegates broadcast missing ones wrongly."""
        given = self.get_shape(operator.outputs[0])
        behind = [self.before_flattening(x) for x in operator.inputs]
        shapes = {self.get_shape(x)[:-1] for x in behind if x is not None}
        shapes = [shape for shape in shapes if [math.prod(shape)] == list(given[:-1])]
        if len(given) != 2 or not shapes:
            operator.inputs = self._with_axes(operator.inputs, len(given))
            return self.emit(operator)
        rows, inputs = shapes[0], []
        for x in operator.inputs:
            own = self.get_shape(x)
            has_rows = len(own) == 2 and own[0] == given[0]
            inputs.append(self.reshape(x, (*rows, own[-1])) if has_rows else x)
        operator.inputs = self._with_axes(inputs, len(rows) + 1)
        self.emit_and_reshape(operator, (*rows, given[-1]))

    def _with_axes(self, tensors, rank):
        """Axes in front, for all but numbers and constant rows."""
        inputs = []
        for x in map(int, tensors):
            own = self.get_shape(x)
            if len(own) > 1 or (own and not self.is_constant(x)):
                x = self.reshape(x, (1,) * (rank - len(own)) + own)
            inputs.append(x)
        return np.asarray(inputs, "int32")

    def _on_reduce_max(self, operator):
        """Keeps a reduction apart from an addition: fused by a delegate, both are wrong."""
        x = int(operator.inputs[0])
        maker = self.makers.get(x)
        if maker is not None and self.file.kind(maker) == "ADD" and not self.is_quantized(x):
            apart, one = self.copy_tensor(x, self.get_shape(x)), np.asarray(1, "float32")
            one = self.file.constant(self.graph, one)
            self.emit(self.file.operator("MUL", [x, one], apart))
            operator.inputs = np.asarray([apart, *operator.inputs[1:]], "int32")
        self.emit(operator)

    _on_reduce_min = _on_reduce_max
