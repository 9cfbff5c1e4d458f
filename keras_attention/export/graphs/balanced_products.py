"""Int8 weights behind norms: the error is a quarter in 3.6 MB, ai-edge-quantizer's file has 8.7 MB.

Measured on the logits of `pos-tagger-en-ewt`: the largest error is 0.28 by TensorFlow's converter,
0.07 here and 0.06 by ai-edge-quantizer 0.10.0, with its recipe dynamic_wi8_afp32. All take the same
time.
"""

import collections
import copy

import numpy as np

from keras_attention.export.graphs.embedding_tables import round_rows
from keras_attention.export.graphs.flatbuffer import (
    GraphFile,
    add_tensor,
    get_shape,
    replace_operator,
)

_REACH = 3.0  # standard deviations of a normalized feature that count as its largest value
_SPREAD = 64.0  # the largest factor, as a multiple of the middle one


def balance_products(content, weights):
    """Return the LiteRT file `content`, whose products behind norms are closer to those of floats.

    Where weights are int8, LiteRT rounds each row of activations to 256 levels, too, of which a few
    large features leave little for the others. Here every feature that enters a product is divided
    by a factor, and the kernel's entries for it are multiplied by that factor (SmoothQuant, Xiao et
    al., 2023, with exponent 1/2). Calibration is not needed: a norm's scale and offset say how
    large each feature gets, and with that how much noise the product will have. Where factors would
    add to it, the product stays as it is.

    Args:
        content: bytes of a file whose weights are int8.
        weights: list of float arrays or variables, of which kernels are rounded anew. Products of
            other weights stay as they are.

    Returns:
        bytes; `content` itself where nothing was found to change.
    """
    file = _ProductFile(content, weights)
    return file.content() if file.balance() else content


class _ProductFile(GraphFile):
    def __init__(self, content, weights):
        super().__init__(content)
        self.weights = [w for w in weights if len(w.shape) >= 2]
        self.makers = [
            {int(y): op for op in graph.operators for y in op.outputs} for graph in self.graphs
        ]

    def balance(self):
        """Balances what it can; returns how many kernels that were."""
        changed = 0
        for buffer, norm, products in self._list_kernels():
            graph, product = products[0]
            floats = self._find_floats(graph.tensors[product.inputs[1]])
            if floats is not None:
                factor = _choose_factor(*norm, floats)
                if factor is None:
                    continue
                numbers, scales = round_rows(floats * factor)
                self.model.buffers[buffer].data = numbers.reshape(-1).view("uint8")
                for graph, product in products:
                    graph.tensors[product.inputs[1]].quantization = self.scales_of(scales)
                self._divide_inputs(products, (1 / factor).astype("float32"))
                changed += 1
        return changed

    def _list_kernels(self):
        """Kernels that only products behind one norm read: their buffer, scale and offset of the
        norm, and the products (graph, operator).
        """
        behind, readers = {}, collections.Counter()
        for graph, makers in zip(self.graphs, self.makers, strict=True):
            readers.update(
                graph.tensors[x].buffer for op in graph.operators for x in op.inputs if x >= 0
            )
            for product in self.of_kind("FULLY_CONNECTED", graph.operators):
                kernel = graph.tensors[product.inputs[1]]
                depth = get_shape(kernel)[-1]
                norm = self._find_norm(graph, makers, int(product.inputs[0]), depth)
                if norm is not None:
                    behind.setdefault(kernel.buffer, []).append((norm, graph, product))
        for buffer, found in behind.items():
            norm = found[0][0]
            if len(found) == readers[buffer] and all(np.array_equal(norm, x[0]) for x in found):
                yield buffer, norm, [x[1:] for x in found]

    def _find_norm(self, graph, makers, x, depth):
        """Scale and offset, both of shape (depth,), of the norm that makes `x`, or None."""
        maker = makers.get(x)
        while maker is not None and self.kind(maker) == "RESHAPE":
            x = int(maker.inputs[0])
            if get_shape(graph.tensors[x])[-1:] != (depth,):
                return None
            maker = makers.get(x)
        if maker is None or self.kind(maker) not in ("ADD", "MUL"):
            return None
        if self.kind(maker) == "MUL":  # x / deviation · scale
            scale, _ = self._find_scale(graph, makers, x, depth)
            return None if scale is None else (scale, np.zeros_like(scale))
        for whole, shift in (maker.inputs[:2], maker.inputs[1::-1]):
            scale, deviation = self._find_scale(graph, makers, int(whole), depth)
            if scale is None:
                continue
            given = self._find_vector(graph, shift, depth)
            if given is not None:  # (x - mean) / deviation · scale + offset
                return scale, given
            # x · (scale / deviation) + (offset - mean · (scale / deviation)), as Keras writes it
            offset, other = np.zeros_like(scale), makers.get(int(shift))
            if other is not None and self.kind(other) == "ADD":
                vectors = [self._find_vector(graph, i, depth) for i in other.inputs]
                rest = [int(i) for i, v in zip(other.inputs, vectors, strict=True) if v is None]
                offset = next((v for v in vectors if v is not None), None)
                shift = rest[0] if offset is not None and rest else shift
            if offset is not None and deviation in self._list_factors(makers, int(shift)):
                return scale, offset
        return None

    def _find_scale(self, graph, makers, x, depth):
        """Of a product of tensors with one over a deviation: its vector, and that tensor."""
        factors = self._list_factors(makers, x)
        for factor in factors:
            maker = makers.get(factor)
            if maker is not None and self.kind(maker) == "RSQRT":
                vectors = [self._find_vector(graph, i, depth) for i in factors]
                vectors = [v for v in vectors if v is not None]
                return np.prod([np.ones(depth, "float32"), *vectors], axis=0), factor
        return None, None

    def _list_factors(self, makers, x):
        """Return the tensors whose product `x` is; `x` alone if it is no product."""
        maker = makers.get(x)
        if maker is None or self.kind(maker) != "MUL":
            return [x]
        return [factor for i in maker.inputs for factor in self._list_factors(makers, int(i))]

    def _find_vector(self, graph, x, depth):
        """Return a constant of one number for each feature, or for all of them; None for others."""
        value = self.value(graph.tensors[int(x)])
        if value is None or value.dtype != "float32" or value.size not in (1, depth):
            return None
        return np.broadcast_to(value.reshape(-1), (depth,))

    def _find_floats(self, tensor):
        """Return the floats (outputs, inputs) that an int8 kernel was rounded from, or None."""
        scales = None if tensor.quantization is None else tensor.quantization.scale
        rows, depth = get_shape(tensor)
        data = self.bytes_of(tensor)
        if tensor.type != self.schema.TensorType.INT8 or not data or np.size(scales) != rows:
            return None
        numbers = np.frombuffer(data, "int8").reshape(rows, depth)
        scales = np.asarray(scales, "float32")[:, None]
        for place, weight in enumerate(self.weights):
            if np.prod(weight.shape) != numbers.size:
                continue
            for floats in _lay_out(weight, rows, depth):
                # A few rows tell others apart without a look at all of them.
                if all(
                    (np.abs(numbers[i] * scales[i] - floats[i]) <= 0.51 * scales[i]).all()
                    for i in (slice(0, 4), slice(None))
                ):
                    self.weights.append(self.weights.pop(place))  # the next one is another
                    return floats
        return None

    def _divide_inputs(self, products, factor):
        """Puts a product with `factor` before each tensor that `products` read."""
        divided = {}
        for graph, product in products:
            x = int(product.inputs[0])
            if (id(graph), x) not in divided:
                tensor = copy.copy(graph.tensors[x])
                tensor.name = None
                y = divided[id(graph), x] = add_tensor(graph, tensor)
                multiply = self.operator("MUL", [x, self.constant(graph, factor)], y)
                replace_operator(graph, product, multiply, product)
            product.inputs[0] = divided[id(graph), x]


def _choose_factor(scale, offset, kernel):
    """What each feature is divided by, float32 (D,), or None where that would add noise.

    The middle factor is 1; so is that of features that are zero on either side.
    """
    reach = _REACH * np.abs(scale) + np.abs(offset)
    entries = np.sqrt(np.square(kernel).mean(0))
    used = (reach > 0) & (entries > 0)
    if not used.any():
        return None
    factor = np.ones_like(reach)
    found = np.sqrt(reach[used] / entries[used])
    factor[used] = np.clip(found / np.median(found), 1 / _SPREAD, _SPREAD)
    plain = _predict_noise(scale, offset, kernel)
    balanced = _predict_noise(scale / factor, offset / factor, kernel * factor)
    return factor if balanced < plain else None


def _predict_noise(scale, offset, kernel):
    """Variance that rounding adds to the outputs of a product, on the average.

    Of features with mean `offset` and deviation `scale`, in 255 steps of their range for each
    position, and of a kernel (outputs, D), in 127 steps of its largest entry for each output.
    """
    reach = _REACH * np.abs(scale)
    spread = max((offset + reach).max(), 0) - min((offset - reach).min(), 0)
    features = (spread / 255) ** 2 * np.square(kernel).sum(1).mean()
    steps = np.abs(kernel).max(1) / 127
    return features + np.square(steps).mean() * (scale**2 + offset**2).sum()


def _lay_out(weight, rows, depth):
    """Kernels (outputs, inputs) that a product may have made of a weight, as they come to be."""
    if not _splits(weight.shape, depth):
        return
    values = np.asarray(weight, "float32")
    yield values.reshape(depth, rows).T
    if rows == depth or not _splits(weight.shape, rows):
        return
    yield values.reshape(rows, depth)


def _splits(shape, size):
    """Return whether the first axes of a shape hold `size` numbers together."""
    return size in np.cumprod(shape)
