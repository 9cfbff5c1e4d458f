"""How LiteRT files store the kernels of matrix products: as int8, or as int4 in blocks."""

import copy
import dataclasses

import numpy as np

from keras_attention.export.graphs.embedding_tables import round_rows
from keras_attention.export.graphs.flatbuffer import add_tensor, replace_operator

BLOCK_SIZE = 32

# Scales of blocks are float16. XNNPACK reads only the first 7 bits of their mantissa.
_LEAST_SCALE, _MOST_SCALE = 2.0**-14, 2.0**15
_CLIPPING = np.linspace(0.7, 1.0, 7)  # the tried sizes of a step, relative to max / 7
# The version of FULLY_CONNECTED. Older runtimes refuse it, but would give wrong numbers for blocks.
_BLOCKS_VERSION = 14
_GROUP = 32  # the number of values that the runtime without XNNPACK multiplies at once
_LEAST_OUTPUTS = 4  # with fewer outputs, the runtime without XNNPACK gives wrong numbers for blocks
_ACTIVATIONS = {1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6", 4: "TANH"}  # as in the file
_ROWS = 512  # number of rows that are rounded at once, which saves memory


@dataclasses.dataclass(frozen=True)
class Int8Rows:
    """Stores kernels as int8, with a scale for each row. The converter writes this format."""

    stores_all = False  # only kernels that change are stored again

    def compute_steps(self, kernel):
        """Return the distance between two levels, (outputs, 1), for a kernel (outputs, D)."""
        return np.abs(kernel).max(1, keepdims=True) / 127

    def store(self, file, kernel, products):
        """Store a kernel in a file.

        Args:
            file: `GraphFile`.
            kernel: float32 array (outputs, D).
            products: list of (graph, operator), all FULLY_CONNECTED operators with this kernel,
                which share its buffer.
        """
        numbers, scales = round_rows(kernel)
        for graph, product in products:
            tensor = graph.tensors[product.inputs[1]]
            file.model.buffers[tensor.buffer].data = numbers.reshape(-1).view("uint8")
            tensor.quantization = file.scales_of(scales)


INT8_ROWS = Int8Rows()


@dataclasses.dataclass(frozen=True)
class Int4Blocks:
    """Stores kernels as int4, with a scale for each block of a row.

    Args:
        block_size: int, the number of neighboring values with the same scale, a multiple of 32.
            If it is None, kernels have a scale for each row, because GPU delegates crash on blocks
            and browsers compute them slowly. Kernels with fewer than 4 outputs always have a scale
            for each row. Kernels whose rows are not a multiple of 32 stay int8: without XNNPACK,
            int4 gives wrong numbers for them.
    """

    block_size: int | None = BLOCK_SIZE
    stores_all = True

    def compute_steps(self, kernel):
        """Return the distance between two levels at each value of a kernel (outputs, D)."""
        if kernel.shape[1] % _GROUP:
            return INT8_ROWS.compute_steps(kernel)
        blocks = self._split(kernel)
        steps = np.abs(blocks).max(-1, keepdims=True) / 7
        return np.broadcast_to(steps, blocks.shape).reshape(kernel.shape)

    def store(self, file, kernel, products):
        """Store a kernel in a file. The arguments are those of `Int8Rows.store`."""
        if kernel.shape[1] % _GROUP:
            return INT8_ROWS.store(file, kernel, products)
        numbers, scales = round_blocks(self._split(kernel))
        data, in_blocks = pack_int4(numbers), scales.shape[1] > 1
        if in_blocks:
            file.require("FULLY_CONNECTED", _BLOCKS_VERSION)
            data_of_scales = np.frombuffer(scales.astype("float16").tobytes(), "uint8")
            file.model.buffers.append(file.schema.BufferT(data_of_scales))
            scales_buffer = len(file.model.buffers) - 1
        kernels = {(id(graph), int(product.inputs[1])): graph for graph, product in products}
        for (_, index), graph in kernels.items():
            tensor = graph.tensors[index]
            file.model.buffers[tensor.buffer].data = data
            tensor.type = file.schema.TensorType.INT4
            tensor.quantization = (
                self._make_parameters(file, graph, scales.shape, scales_buffer)
                if in_blocks
                else file.scales_of(scales[:, 0])
            )
        for graph, product in products if in_blocks else ():
            _separate_activation(file, graph, product)

    def _make_parameters(self, file, graph, shape, buffer):
        """Return the quantization parameters of a kernel in blocks.

        `shape` (outputs, number of blocks) and `buffer` (int) are those of the scales. The function
        adds a tensor with the scales to the graph.
        """
        dtype = file.schema.TensorType.FLOAT16
        scales = file.schema.TensorT(
            shape=np.asarray(shape, "int32"), type=dtype, buffer=buffer, hasRank=True
        )
        blocks = file.schema.BlockwiseQuantizationT()
        blocks.scales = add_tensor(graph, scales)
        blocks.zeroPoints, blocks.blockSize = -1, self.block_size
        parameters = file.schema.QuantizationParametersT()
        parameters.detailsType = file.schema.QuantizationDetails.BlockwiseQuantization
        parameters.details = blocks
        return parameters

    def _split(self, kernel):
        """Return the blocks of a kernel, an array (outputs, number of blocks, values)."""
        rows, depth = kernel.shape
        fits = self.block_size and depth % self.block_size == 0 and rows >= _LEAST_OUTPUTS
        size = self.block_size if fits else depth
        return kernel.reshape(rows, depth // size, size)


def _separate_activation(file, graph, product):
    """Move the activation function of a product into an operator of its own.

    With blocks, the runtime without XNNPACK ignores an activation function inside the product.
    """
    kind = _ACTIVATIONS.get(product.builtinOptions.fusedActivationFunction)
    if kind is None:
        return
    output = int(product.outputs[0])
    linear = add_tensor(graph, copy.copy(graph.tensors[output]))
    product.outputs = np.asarray([linear], "int32")
    product.builtinOptions.fusedActivationFunction = 0
    replace_operator(graph, product, product, file.operator(kind, [linear], output))


def choose_format(quantization, runtimes):
    """Return the format of kernels for a `Quantization`.

    `runtimes` are the names of the runtimes that must run the file, such as `"gpu"`.
    """
    if quantization.weight_dtype != "int4":
        return INT8_ROWS
    in_rows = {"gpu", "web"}.intersection(runtimes)  # in browsers, blocks are 8 times slower
    return Int4Blocks(None if in_rows else BLOCK_SIZE)


def round_blocks(blocks):
    """Round blocks (rows, blocks, values) to int4. Return (int8 array, scales (rows, blocks)).

    The levels are -8 to 7. Clipping the largest values of a block can make the steps between levels
    smaller. The function tries several scales, and chooses the one with the smallest squared error.
    """
    numbers = np.empty(blocks.shape, "int8")
    scales = np.empty(blocks.shape[:2], "float32")
    for start in range(0, len(blocks), _ROWS):
        rows = slice(start, start + _ROWS)
        numbers[rows], scales[rows] = _round_rows(blocks[rows])
    return numbers, scales


def _round_rows(blocks):
    largest = np.abs(blocks).max(-1, keepdims=True) / 7
    least = None
    for share in _CLIPPING:
        scale = round_scales(largest * share)
        numbers = np.clip(np.rint(blocks / scale), -8, 7)
        error = np.square(numbers * scale - blocks).sum(-1, keepdims=True)
        if least is None:
            least, best, scales = error, numbers, scale
            continue
        better = error < least
        least = np.where(better, error, least)
        best, scales = np.where(better, numbers, best), np.where(better, scale, scales)
    return best.astype("int8"), scales[..., 0]


def round_scales(scales):
    """Round positive float32 scales to 8 significant bits, in the range of float16."""
    scales = np.where(scales == 0, 1.0, scales)
    fraction, exponent = np.frexp(np.clip(scales, _LEAST_SCALE, _MOST_SCALE))
    return np.ldexp(np.rint(fraction * 256) / 256, exponent).astype("float32")


def pack_int4(numbers):
    """Pack integers from -8 to 7 into bytes, two in each, the first one in the lower half."""
    halves = np.asarray(numbers, "int8").reshape(-1).view("uint8") & 15
    halves = np.append(halves, np.zeros(len(halves) % 2, "uint8"))
    return halves[::2] | halves[1::2] << 4
