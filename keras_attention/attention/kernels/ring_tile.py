"""A tile of ring attention: the attention of some queries to some keys, as sums over tiles."""

from keras import ops

from keras_attention import masks
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.axis_pieces import WholeAxis

HIDDEN = -1e30  # exponent of a masked score: exp(HIDDEN - reference) is 0
LOWEST = -1e20  # the lowest reference, which is subtracted from exponents before exp

# The query axis (or key axis) of each operand, keyed by its name.
ROW_AXES = {"query": 1, "positions": -1, "segments": 1, "mask": 2, "bias": 2}
COLUMN_AXES = {"key": 1, "value": 1, "positions": -1, "segments": 1, "mask": 3, "bias": 3}


class Tile:
    """Computes attention of some queries (rows) to some keys (columns), for ring attention.

    The methods `rows` and `columns` return dicts of tensors of the whole sequence: the query, or
    key and value, with their positions and masks. The other methods take slices of these tensors,
    for T queries and S keys.

    Args:
        equation: `Equation`, the score, normalizer and position encoding. Its normalizer must
            define `exponents`.
        visibility: `Visibility`, the masks and positions of the call.
    """

    def __init__(self, equation, visibility):
        self.equation, self.visibility = equation, visibility
        self.mask = visibility.tensor_without_segments  # computed outside the inner JAX traces

    def rows(self, query):
        """Return a dict of the tensors in `ROW_AXES`, which stay on a device with its queries.

        `query` is (B, T, N, H).
        """
        positions = WholeAxis(query.shape[1]).positions(self.visibility.query_positions)
        rows = {"query": query, "positions": ops.cast(positions, "int32")}
        if self.visibility.segments is not None:
            rows["segments"] = self.visibility.segments[0]
        return {**rows, **self._masks(lambda queries, keys: queries)}

    def columns(self, key, value):
        """Return a dict of the tensors in `COLUMN_AXES`, which devices pass on with the keys.

        `key` is (B, S, K, H) and `value` is (B, S, K, Hv).
        """
        positions = WholeAxis(key.shape[1]).positions(self.visibility.key_positions)
        columns = {"key": key, "value": value, "positions": ops.cast(positions, "int32")}
        if self.visibility.segments is not None:
            columns["segments"] = self.visibility.segments[1]
        return {**columns, **self._masks(lambda queries, keys: keys and not queries)}

    def _masks(self, belongs):
        """Return a dict of the mask and the bias, each only if `belongs` returns True for it.

        `belongs(has_queries, has_keys)` is a function of two bools: whether the tensor's query axis
        and its key axis are longer than 1.
        """
        tensors = {"mask": self.mask, "bias": self.equation.bias}
        return {
            name: x
            for name, x in tensors.items()
            if x is not None and belongs(x.shape[2] != 1, x.shape[3] != 1)
        }

    def exponents(self, rows, columns, start):
        """Compute the exponents in the softmax: float32 (B, N, T, S), `HIDDEN` where masked.

        `rows` is a slice of the dict from the method `rows`, with T queries. `columns` is a slice
        of the dict from the method `columns`, with S keys. `start` is the index of the first key.
        """
        query, key = rows["query"], columns["key"]
        i, j = rows["positions"], columns["positions"]
        bias = self._cut("bias", self.equation.bias, rows, columns, start)
        bias = self.equation.block_bias(i, j, query, key, bias)
        tensor = self._cut("mask", self.mask, rows, columns, start)
        if "segments" in rows:
            segments = masks.same_segment(rows["segments"], columns["segments"])
            tensor = masks.all_of(tensor, segments)
        mask = self.visibility.allows(i, j, tensor)
        scores = dense.compute_scores(self.equation.score, query, key)
        if bias is not None:
            scores = ops.cast(scores, bias.dtype) + bias
        exponents = self.equation.normalizer.exponents(ops.cast(scores, "float32"))
        return exponents if mask is None else ops.where(mask, exponents, HIDDEN)

    def _cut(self, name, whole, rows, columns, start):
        if name in columns:
            return columns[name]
        if name not in rows:
            return whole
        x, size = rows[name], columns["key"].shape[1]
        return x if x.shape[3] == 1 else ops.slice(x, (0, 0, 0, start), (*x.shape[:3], size))

    def sums(self, exponents, rows, columns, reference):
        """Compute the sums over keys of `exp(e - reference) · v` and of `exp(e - reference)`.

        Here e are the `exponents` (B, N, T, S), which the method of this name returns, and v are
        the values of the S keys. `rows` and `columns` are slices of the dicts from the methods of
        these names. `reference` (B, N, T, 1) is a number for each query, such as its largest
        exponent. Both sums are float32, (B, N, T, Hv) and (B, N, T, 1).
        """
        powers = ops.exp(exponents - reference)
        value = columns["value"]
        weights = ops.cast(powers, value.dtype)
        output = dense.matmul_by_group(weights, ops.transpose(value, (0, 2, 1, 3)))
        values = self.equation.block_values(rows["positions"], columns["positions"], weights)
        if values is not None:
            output = dense.add_position_values(ops.transpose(output, (0, 2, 1, 3)), values)
            output = ops.transpose(output, (0, 2, 1, 3))
        return ops.cast(output, "float32"), ops.sum(powers, axis=3, keepdims=True)

    def add(self, rows, columns, start, state):
        """Update a running softmax with the keys of `columns`, and return its new state.

        A state is a tuple of float32 tensors: the largest exponent so far (B, N, T, 1), and the two
        sums that the method `sums` returns. `rows` and `columns` are slices of the dicts from the
        methods of these names, for T queries and S keys. `start` is the index of the first key.
        """
        reference, output, total = state
        exponents = self.exponents(rows, columns, start)
        highest = ops.maximum(reference, ops.max(exponents, axis=3, keepdims=True))
        factor = ops.exp(reference - highest)
        new_output, new_total = self.sums(exponents, rows, columns, highest)
        return highest, output * factor + new_output, total * factor + new_total

    def normalized(self, rows, columns, start, reference):
        """Compute the two results of `sums` with normalized weights, for the backward pass.

        `rows` and `columns` are slices of the dicts from the methods of these names, for T queries
        and S keys. `start` is the index of the first key. `reference` (B, N, T, 1) is the logarithm
        of the total over all keys, which the forward pass computed.
        """
        return self.sums(self.exponents(rows, columns, start), rows, columns, reference)
