"""A tile of attention, some queries over some keys, as sums that are added up tile by tile."""

from keras import ops

from keras_attention import masks
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.axis_pieces import WholeAxis

HIDDEN = -1e30  # the exponent of what a mask hides; no reference is as low, so its exp is 0
LOWEST = -1e20  # the least reference that exponents are taken from

# Name of an operand -> its axis of queries, or of keys.
ROW_AXES = {"query": 1, "positions": -1, "segments": 1, "mask": 2, "bias": 2}
COLUMN_AXES = {"key": 1, "value": 1, "positions": -1, "segments": 1, "mask": 3, "bias": 3}


class Tile:
    """The equation for some queries and some keys, cut from what `rows` and `columns` give.

    Args:
        equation, visibility: as `dense`; the normalizer has `exponents`.
    """

    def __init__(self, equation, visibility):
        self.equation, self.visibility = equation, visibility
        self.mask = visibility.tensor_without_segments  # made outside of what JAX traces by parts

    def rows(self, query):
        """Return the operands cut along queries (B, T, N, H), by the names of `ROW_AXES`."""
        positions = WholeAxis(query.shape[1]).positions(self.visibility.query_positions)
        rows = {"query": query, "positions": ops.cast(positions, "int32")}
        if self.visibility.segments is not None:
            rows["segments"] = self.visibility.segments[0]
        return {**rows, **self._masks(lambda queries, keys: queries)}

    def columns(self, key, value):
        """Return the operands that travel with keys and values, by the names of `COLUMN_AXES`."""
        positions = WholeAxis(key.shape[1]).positions(self.visibility.key_positions)
        columns = {"key": key, "value": value, "positions": ops.cast(positions, "int32")}
        if self.visibility.segments is not None:
            columns["segments"] = self.visibility.segments[1]
        return {**columns, **self._masks(lambda queries, keys: keys and not queries)}

    def _masks(self, belongs):
        """Mask and bias that `belongs(has an axis of queries, has an axis of keys)`."""
        both = {"mask": self.mask, "bias": self.equation.bias}
        return {
            name: x
            for name, x in both.items()
            if x is not None and belongs(x.shape[2] != 1, x.shape[3] != 1)
        }

    def exponents(self, rows, columns, start):
        """Return float32 (B, N, T, S), `HIDDEN` where masked, of keys whose first is `start`."""
        query, key = rows["query"], columns["key"]
        i, j = rows["positions"], columns["positions"]
        bias = self._cut("bias", self.equation.bias, rows, columns, start)
        bias = self.equation.block_bias(i, j, query, key, bias)
        tensor = self._cut("mask", self.mask, rows, columns, start)
        if "segments" in rows:
            segments = masks.same_segment(rows["segments"], columns["segments"])
            tensor = masks.all_of(tensor, segments)
        mask = self.visibility.allows(i, j, tensor)
        scores = dense.scores_of(self.equation.score, query, key)
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
        """Return `Σ exp(e - reference) · v` (B, N, T, Hv), and the same without v (B, N, T, 1)."""
        powers = ops.exp(exponents - reference)
        value = columns["value"]
        weights = ops.cast(powers, value.dtype)
        output = dense.matmul_by_group(weights, ops.transpose(value, (0, 2, 1, 3)))
        more = self.equation.block_values(rows["positions"], columns["positions"], weights)
        if more is not None:
            output = dense.plus(ops.transpose(output, (0, 2, 1, 3)), more)
            output = ops.transpose(output, (0, 2, 1, 3))
        return ops.cast(output, "float32"), ops.sum(powers, axis=3, keepdims=True)

    def add(self, rows, columns, start, state):
        """Add the keys of `columns` to the state of earlier keys, (reference, output, total)."""
        reference, output, total = state
        exponents = self.exponents(rows, columns, start)
        highest = ops.maximum(reference, ops.max(exponents, axis=3, keepdims=True))
        kept = ops.exp(reference - highest)
        more, count = self.sums(exponents, rows, columns, highest)
        return highest, output * kept + more, total * kept + count

    def normalized(self, rows, columns, start, reference):
        """Return the sums as a backward pass differentiates them: those of a whole row are 1."""
        return self.sums(self.exponents(rows, columns, start), rows, columns, reference)
