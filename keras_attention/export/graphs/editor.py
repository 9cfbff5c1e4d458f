"""`GraphEditor`: new tensors and operators for one graph of a LiteRT file, in their order."""

import copy

import numpy as np

from keras_attention.export.graphs.flatbuffer import add_tensor, get_shape


class GraphEditor:
    """Builds the operators of a graph anew; tensors are numbers, as operators name them.

    Args:
        file: `flatbuffer.GraphFile`.
        graph: one of its graphs.
        outputs: numbers of the tensors that somebody reads besides the graph's operators.

    Attributes:
        emitted: operators, those that the graph has in the end.
        same: dict, tensor that is left out -> the one that is read in its place.
        reshaped: dict, output of a RESHAPE -> its input.
        makers: dict, tensor -> the operator that computes it.
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
        """The numbers of a constant, also of one of float16 that is made float32; or None."""
        maker = self.makers.get(int(x))
        if maker is not None and self.file.kind(maker) == "DEQUANTIZE":
            x = maker.inputs[0]
        return self.file.value(self.graph.tensors[int(x)])

    def is_quantized(self, *tensors):
        float32 = self.file.schema.TensorType.FLOAT32
        return any(self.graph.tensors[int(x)].type != float32 for x in tensors)

    def before_flattening(self, x):
        """Return the tensor of more axes that became the matrix `x` by RESHAPE alone, or None."""
        behind = self.reshaped.get(int(x))
        if behind is None or len(self.get_shape(x)) != 2 or len(self.get_shape(behind)) < 3:
            return None
        return behind if self.get_shape(behind)[-1] == self.get_shape(x)[-1] else None

    def emit(self, operator):
        self.emitted.append(operator)
        self.makers |= dict.fromkeys(map(int, operator.outputs), operator)

    def emit_and_reshape(self, operator, shape):
        """Emits an operator that gives `shape`, and a RESHAPE to what it gave before."""
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
        """Return the number of a tensor with the numbers of `x` in another shape."""
        x, shape = int(x), tuple(shape)
        if self.get_shape(x) == shape:
            return x
        if self.is_constant(x):
            return self.copy_tensor(x, shape, constant=True)
        if self.get_value(x) is not None:
            return self.add_weight(self.get_value(x).reshape(shape))
        behind = self.reshaped.get(x)
        if behind is not None and self.get_shape(behind) == shape:
            return behind
        y = self.copy_tensor(x, shape)
        self.reshape_into(x if behind is None else behind, y)
        return y

    def combine(self, kind, a, b, y=None):
        """The number of the tensor, `y` or a new one like `a`, that two float32 ones give."""
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
        """`x`, repeated along the axes of the batch that it has not."""
        own = self.get_shape(x)
        wanted = (*batch, *own[-2:])
        own = (1,) * (len(wanted) - len(own)) + own
        value = self.get_value(x)
        if value is not None:
            if self.get_shape(x) == wanted:
                return x
            return self.add_weight(np.broadcast_to(value.reshape(own), wanted))
        x = self.reshape(x, own)
        if own == wanted:
            return x
        times = [many // one for many, one in zip(wanted, own, strict=True)]
        repeated = self.copy_tensor(x, wanted)
        times = self.file.constant(self.graph, np.asarray(times, "int32"))
        self.emit(self.file.operator("TILE", [x, times], repeated))
        return repeated

    def copy_tensor(self, x, shape, constant=False):
        """Return the number of a new tensor like `x`, in another shape."""
        tensor = copy.copy(self.graph.tensors[x])
        tensor.shape = np.asarray(shape, "int32")
        tensor.shapeSignature = None
        if not constant:
            tensor.buffer = 0  # the empty one, of tensors that are computed
        return add_tensor(self.graph, tensor)

    def add_number(self, value):
        return self.file.constant(self.graph, np.asarray(value, "float32"))

    def add_weight(self, value):
        """Return the number of a float32 tensor of these numbers, stored as they are."""
        stored = self.file.constant(self.graph, value)
        if value.dtype != "float16":
            return stored
        floats = self.copy_tensor(stored, value.shape)
        self.graph.tensors[floats].type = self.file.schema.TensorType.FLOAT32
        self.emit(self.file.operator("DEQUANTIZE", [stored], floats))
        return floats


def swap_last_axes(rank):
    """Return an order of axes that swaps the last two."""
    return (*range(rank - 2), rank - 1, rank - 2)
