"""Rewrite graphs of fixed shapes, so that GPU delegates run all operators correctly.

The GPU delegate of ai_edge_litert does not support some operators, returns wrong results for
other operators, and crashes on a few. `tests/export/graphs/test_gpu.py` has a test for each of
these operators. Results on the CPU do not change, except sine and cosine by up to 1e-6.
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
_LANES = 4  # number of columns in a GPU vector

# Coefficients of polynomials in r² for sin(r) / r and cos(r), lowest power first. For r from -π to
# π, the error is at most 6e-7.
_SINE = (1.0, -0.16666666, 8.3333217e-3, -1.9840534e-4, 2.753585e-6, -2.472881e-8, 1.3613e-10)
_COSINE = (1.0, -0.4999999, 4.1666489e-2, -1.3887803e-3, 2.4769883e-5, -2.7079029e-7, 1.7245e-9)
_TURN = 6.28125, 2 * math.pi - 6.28125  # products of the first with integers are exact in float32


def adapt_to_gpu(content):
    """Rewrite the graphs of fixed shapes in a LiteRT file for GPU delegates.

    Args:
        content: bytes, the content of the file.

    Returns:
        bytes, the new content, or `content` itself if no graph has fixed shapes.
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
    """One pass over the operators of a graph, which keeps or replaces each operator.

    The method `_on_<kind>` handles the operators of a type, such as `_on_gather` for GATHER.
    """

    def __init__(self, file, graph, outputs):
        super().__init__(file, graph, outputs)
        self.reduced = {}  # tensor of angles -> (angles reduced to -π to π, their squares)
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
        """Rewrite a lookup of rows: flatten the indices to one axis, and read the stored dtype."""
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
        """Rewrite a slice that removes axes: slice with all axes, and remove them by a RESHAPE."""
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
        shape, sizes = self.get_shape(operator.inputs[0]), []
        left = list(self.get_shape(operator.outputs[0]))
        for axis, size in enumerate(shape):
            dropped = axis < len(begin) and options.shrinkAxisMask >> axis & 1
            if dropped:
                begin[axis] %= size
                end[axis] = begin[axis] + 1
                steps[axis] = 1
            sizes.append(1 if dropped else left.pop(0))
        for mask in ("beginMask", "endMask"):
            setattr(options, mask, getattr(options, mask) & ~options.shrinkAxisMask)
        options.shrinkAxisMask = 0
        constants = [self.file.constant(self.graph, bound) for bound in bounds]
        operator.inputs = np.asarray([operator.inputs[0], *constants], "int32")
        self.emit_and_reshape(operator, sizes)

    def _on_split(self, operator):
        self._cut(operator, *operator.inputs[::-1])

    def _on_split_v(self, operator):
        self._cut(operator, operator.inputs[0], operator.inputs[2])

    def _cut(self, operator, x, axis):
        """Replace a SPLIT before a CONCATENATION by slices, because the delegate ignores the SPLIT.

        `x` is the tensor to split, and `axis` is the tensor with the number of the axis.
        """
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
        """Replace SIN by a polynomial, because the error of SIN on a GPU is 1e-4 or more."""
        self._wave(operator, _SINE, odd=True)

    def _on_cos(self, operator):
        self._wave(operator, _COSINE, odd=False)

    def _wave(self, operator, factors, odd):
        x, y = int(operator.inputs[0]), int(operator.outputs[0])
        before, flat = self.before_flattening(x), None
        if before is not None:
            x, y, flat = before, self.copy_tensor(y, self.get_shape(before)), y
        angle, square = self._reduced(x)
        lowest, *middle, value = map(self.add_number, factors)
        for factor in reversed(middle):
            value = self.combine("ADD", self.combine("MUL", square, value), factor)
        value = self.combine("MUL", square, value)
        if odd:
            self.combine("MUL", self.combine("ADD", value, lowest), angle, y)
        else:
            self.combine("ADD", value, lowest, y)
        if flat is not None:
            self.reshape_into(y, flat)

    def _reduced(self, x):
        """Return the angles `x` reduced to the range -π to π, and their squares, as two tensors."""
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
        """Pad the scores of a top-k, because the delegate reads whole GPU vectors of 4 columns."""
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
        """Rewrite a cumulative sum along the last axis, which is wrong or crashes on a GPU.

        The new operators sum along the second of three axes.
        """
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
        """Rewrite a batched matrix product as delegates need it.

        Both operands get the same batch axes, and a constant becomes the right operand.
        """
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
        """Rewrite a dense layer, so that its input keeps all axes instead of becoming a matrix."""
        x, weights, *_ = map(int, operator.inputs)
        y = int(operator.outputs[0])
        shape, output = self.get_shape(x), self.get_shape(y)
        if shape[-1] != self.get_shape(weights)[-1] or len(output) != 2 or output[0] == 1:
            return self.emit(operator)
        if len(shape) == 2:
            before = self.before_flattening(x)
            x = self.reshape(x, (1, *shape)) if before is None else before
            operator.inputs = np.asarray([x, *operator.inputs[1:]], "int32")
        operator.builtinOptions.keepNumDims = True
        self.emit_and_reshape(operator, (*self.get_shape(x)[:-1], output[-1]))

    def _on_pad(self, operator):
        """Rewrite a PAD of bools, or of a tensor with fewer than three axes.

        Delegates do not support these two cases.
        """
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
        """Replace a PAD of bools by concatenations of the tensor with constants.

        `around` is an int array (axes, 2) with the number of values before and after each axis.
        """
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
        """Return a constant whose values are all `filling`, or None if `size` is 0.

        The shape is that of `x`, but with the size `size` along the axis `axis`.
        """
        if not size:
            return None
        shape = list(self.get_shape(x))
        shape[axis] = int(size)
        return self.file.constant(self.graph, np.full(shape, filling))

    _on_padv2 = _on_pad

    def _unary(self, operator):
        before = self.before_flattening(operator.inputs[0])
        if before is None or len(operator.inputs) > 1:
            return self.emit(operator)
        operator.inputs = np.asarray([before], "int32")
        self.emit_and_reshape(operator, self.get_shape(before))

    def _binary(self, operator):
        """Rewrite an operator such as ADD, so that both operands have the same number of axes.

        Delegates broadcast operands with different numbers of axes incorrectly.
        """
        output = self.get_shape(operator.outputs[0])
        before = [self.before_flattening(x) for x in operator.inputs]
        shapes = {self.get_shape(x)[:-1] for x in before if x is not None}
        shapes = [shape for shape in shapes if [math.prod(shape)] == list(output[:-1])]
        if len(output) != 2 or not shapes:
            operator.inputs = self._with_axes(operator.inputs, len(output))
            return self.emit(operator)
        rows, inputs = shapes[0], []
        for x in operator.inputs:
            own = self.get_shape(x)
            has_rows = len(own) == 2 and own[0] == output[0]
            inputs.append(self.reshape(x, (*rows, own[-1])) if has_rows else x)
        operator.inputs = self._with_axes(inputs, len(rows) + 1)
        self.emit_and_reshape(operator, (*rows, output[-1]))

    def _with_axes(self, tensors, rank):
        """Prepend axes to tensors until each has `rank` axes, and return an array of the tensors.

        Scalars and constants with one axis do not change.
        """
        inputs = []
        for x in map(int, tensors):
            own = self.get_shape(x)
            if len(own) > 1 or (own and not self.is_constant(x)):
                x = self.reshape(x, (1,) * (rank - len(own)) + own)
            inputs.append(x)
        return np.asarray(inputs, "int32")

    def _on_reduce_max(self, operator):
        """Put a multiplication by 1 between an ADD and a maximum or minimum of its result.

        Otherwise a delegate fuses both operators incorrectly.
        """
        x = int(operator.inputs[0])
        maker = self.makers.get(x)
        if maker is not None and self.file.kind(maker) == "ADD" and not self.is_quantized(x):
            copied, one = self.copy_tensor(x, self.get_shape(x)), np.asarray(1, "float32")
            one = self.file.constant(self.graph, one)
            self.emit(self.file.operator("MUL", [x, one], copied))
            operator.inputs = np.asarray([copied, *operator.inputs[1:]], "int32")
        self.emit(operator)

    _on_reduce_min = _on_reduce_max
