"""`GraphEditor`: writes new operators for a LiteRT graph, in execution order."""

import copy

import numpy as np

from keras_attention.export.graphs.flatbuffer import add_tensor, get_shape


class GraphEditor:
    """Collects new operators for a graph, which a subclass derives from the old operators.

    The methods identify a tensor (`x`, `y`) by its index in the graph. To emit an operator means to
    append it to the list of new operators.

    Args:
        file: `flatbuffer.GraphFile`, a LiteRT file.
        graph: a graph of this file.
        outputs: set of the tensors whose values are needed outside the graph.

    Attributes:
        emitted: list of the new operators.
        same: dict from each removed tensor to the tensor that replaces it.
        reshaped: dict from the output of each RESHAPE to its input.
        makers: dict from each tensor to the operator that computes it.
    """

    def __init__(self, file, graph, outputs):
        self.file, self.graph = file, graph
        self.outputs = outputs | set(map(int, graph.outputs))
        self.emitted = []
        self.same, self.reshaped, self.makers = {}, {}, {}

    def list_inputs(self, kind):
        operators = self.file.of_kind(kind, self.graph.operators)
        return {int(i) for operator in operators for i in operator.inputs}

    def get_shape(self, x):
        return get_shape(self.graph.tensors[int(x)])

    def is_constant(self, x):
        data = self.file.model.buffers[self.graph.tensors[int(x)].buffer].data
        return data is not None and len(data) > 0

    def get_value(self, x):
        """Return the values of a constant, or None if the tensor is not constant.

        `x` is the index of the tensor in the graph. A float16 constant that is converted to float32
        is a constant, too.
        """
        maker = self.makers.get(int(x))
        if maker is not None and self.file.kind(maker) == "DEQUANTIZE":
            x = maker.inputs[0]
        return self.file.value(self.graph.tensors[int(x)])

    def is_quantized(self, *tensors):
        float32 = self.file.schema.TensorType.FLOAT32
        return any(self.graph.tensors[int(x)].type != float32 for x in tensors)

    def before_flattening(self, x):
        """Return the tensor with more axes that a RESHAPE flattened to the matrix `x`.

        Return None if `x` is not such a matrix.
        """
        before = self.reshaped.get(int(x))
        if before is None or len(self.get_shape(x)) != 2 or len(self.get_shape(before)) < 3:
            return None
        return before if self.get_shape(before)[-1] == self.get_shape(x)[-1] else None

    def emit(self, operator):
        self.emitted.append(operator)
        self.makers |= dict.fromkeys(map(int, operator.outputs), operator)

    def emit_and_reshape(self, operator, shape):
        """Emit an operator whose output gets the new shape `shape`, and a RESHAPE to the old shape.

        `operator` is the operator, and `shape` a tuple of int. Later operators read the reshaped
        tensor, so they need not change.
        """
        y = int(operator.outputs[0])
        if self.get_shape(y) == tuple(shape):
            return self.emit(operator)
        wide = self.copy_tensor(y, shape)
        operator.outputs = np.asarray([wide], "int32")
        self.emit(operator)
        self.reshape_into(wide, y)

    def reshape_into(self, x, y):
        shape = np.asarray(self.get_shape(y), "int32")
        constant = self.file.constant(self.graph, shape)
        self.emit(self.file.operator("RESHAPE", [x, constant], y, newShape=shape))
        self.reshaped[int(y)] = int(x)

    def reshape(self, x, shape):
        """Return the index of a tensor that has the values of tensor `x` in another shape."""
        x, shape = int(x), tuple(shape)
        if self.get_shape(x) == shape:
            return x
        if self.is_constant(x):
            return self.copy_tensor(x, shape, constant=True)
        if self.get_value(x) is not None:
            return self.add_weight(self.get_value(x).reshape(shape))
        before = self.reshaped.get(x)
        if before is not None and self.get_shape(before) == shape:
            return before
        y = self.copy_tensor(x, shape)
        self.reshape_into(x if before is None else before, y)
        return y

    def combine(self, kind, a, b, y=None):
        """Emit a float32 operator with the inputs `a` and `b`, and return its output tensor.

        Tensors are indices in the graph. `kind` is the type of the operator, such as `"ADD"`. The
        output is `y`, or a new tensor if `y` is None.
        """
        y = self.copy_tensor(a, self.get_shape(a)) if y is None else y
        self.emit(self.file.operator(kind, [a, b], y))
        return y

    def transpose(self, x, y, order):
        order = self.file.constant(self.graph, np.asarray(order, "int32"))
        self.emit(self.file.operator("TRANSPOSE", [x, order], y))

    def transpose_last(self, x):
        shape, value = self.get_shape(x), self.get_value(x)
        if value is not None:
            return self.add_weight(np.swapaxes(value, -1, -2))
        turned = self.copy_tensor(x, (*shape[:-2], *shape[:-3:-1]))
        self.transpose(x, turned, swap_last_axes(len(shape)))
        return turned

    def repeat_over_batch(self, x, batch):
        """Repeat the matrix or matrices `x`, and return the new tensor (*batch, rows, columns).

        `batch` is a tuple of int, the sizes of the batch axes.
        """
        own = self.get_shape(x)
        shape = (*batch, *own[-2:])
        own = (1,) * (len(shape) - len(own)) + own
        value = self.get_value(x)
        if value is not None:
            if self.get_shape(x) == shape:
                return x
            return self.add_weight(np.broadcast_to(value.reshape(own), shape))
        x = self.reshape(x, own)
        if own == shape:
            return x
        times = [many // one for many, one in zip(shape, own, strict=True)]
        repeated = self.copy_tensor(x, shape)
        times = self.file.constant(self.graph, np.asarray(times, "int32"))
        self.emit(self.file.operator("TILE", [x, times], repeated))
        return repeated

    def copy_tensor(self, x, shape, constant=False):
        """Add a tensor like tensor `x`, but with another shape, and return its index.

        With `constant=True`, the new tensor has the same constant values as `x`.
        """
        tensor = copy.copy(self.graph.tensors[x])
        tensor.shape = np.asarray(shape, "int32")
        tensor.shapeSignature = None
        if not constant:
            tensor.buffer = 0  # the empty buffer of computed tensors
        return add_tensor(self.graph, tensor)

    def add_number(self, value):
        return self.file.constant(self.graph, np.asarray(value, "float32"))

    def add_weight(self, value):
        """Add the array `value` to the graph as a constant, and return a float32 tensor.

        A float16 array is stored as float16, and converted to float32 when the graph runs.
        """
        stored = self.file.constant(self.graph, value)
        if value.dtype != "float16":
            return stored
        floats = self.copy_tensor(stored, value.shape)
        self.graph.tensors[floats].type = self.file.schema.TensorType.FLOAT32
        self.emit(self.file.operator("DEQUANTIZE", [stored], floats))
        return floats


def swap_last_axes(rank):
    """Return the permutation of `rank` axes that swaps the last two."""
    return (*range(rank - 2), rank - 1, rank - 2)
