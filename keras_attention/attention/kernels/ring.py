"""Attention over a sequence that is split among devices: keys and values travel in a ring."""

import dataclasses

import keras
from keras import ops

from keras_attention import token_layout
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.bias_and_mask import WholeAxis

HIDDEN = -1e30  # the exponent of what a mask hides; no reference is as low, so its exp is 0
LOWEST = -1e20  # the least reference that exponents are taken from


def refuses(case):
    """Why it cannot compute `case`, or None."""
    if keras.backend.backend() != "jax":
        return f"messages between devices are JAX's, and Keras runs on {keras.backend.backend()}"
    devices = token_layout.count_sequence_devices()
    if devices is None:
        return (
            "no distribution is active that splits a sequence among devices, such as "
            'RoleParallel({"data": 2, "sequence": 4})'
        )
    if case.weights:
        return "the weights are asked for, which only dense holds"
    if case.dropout:
        return "dropout on the weights is active, which only dense applies"
    if case.normalizer.exponents is None:
        return f"{case.normalizer} needs all scores of a row at once, and has no online form"
    if None in (case.query_length, case.key_length):
        return "the lengths are not known when the model is traced"
    for name, length in (("queries", case.query_length), ("keys", case.key_length)):
        if length % devices or not length:
            return f"{length} {name} are not split evenly among sequence={devices} devices"
    return None


def ring(query, key, value, *, score, normalizer, bias_and_mask, dropout=None):
    """As `dense`, on JAX, for a sequence that is split among devices (Liu et al., 2023).

    Each device keeps its queries. Keys, values, their positions and their masks go from device to
    device, and a softmax is added up on the way (Milakov and Gimelshein, 2018): memory is a
    device's share of the sequence, forward and backward, and nothing is gathered. Where the mask
    has a band, keys travel no further than it reaches.
    """
    from keras_attention.attention.kernels import ring_jax

    tile = Tile(score, normalizer, bias_and_mask)
    rows, columns = tile.rows(query), tile.columns(key, value)
    reach = None
    if bias_and_mask.mask is not None and bias_and_mask.positions_are_indices:
        reach = bias_and_mask.mask.reach()
        reach = None if reach.tokens else reach
    return ring_jax.go_around(tile, rows, columns, reach), None


# Name of an operand -> its axis of queries, or of keys.
ROW_AXES = {"query": 1, "positions": -1, "segments": 1, "mask": 2, "bias": 2}
COLUMN_AXES = {"key": 1, "value": 1, "positions": -1, "segments": 1, "mask": 3, "bias": 3}


class Tile:
    """The equation for some queries over some keys, as sums that are added up from tile to tile."""

    def __init__(self, score, normalizer, bias_and_mask):
        self.score, self.normalizer, self.given = score, normalizer, bias_and_mask

    def rows(self, query):
        """What is cut along the queries, by the names of `ROW_AXES`; `query` (B, T, N, H)."""
        positions = WholeAxis(query.shape[1]).positions(self.given.query_positions)
        found = {"query": query, "positions": ops.cast(positions, "int32")}
        if self.given.segments is not None:
            found["segments"] = self.given.segments[0]
        return {**found, **self._masks(lambda queries, keys: queries)}

    def columns(self, key, value):
        """What travels, by the names of `COLUMN_AXES`; key (B, S, K, H), value (B, S, K, Hv)."""
        positions = WholeAxis(key.shape[1]).positions(self.given.key_positions)
        found = {"key": key, "value": value, "positions": ops.cast(positions, "int32")}
        if self.given.segments is not None:
            found["segments"] = self.given.segments[1]
        return {**found, **self._masks(lambda queries, keys: keys and not queries)}

    def _masks(self, belongs):
        """Mask and bias that `belongs(has an axis of queries, has an axis of keys)`."""
        both = {"mask": self.given.attention_mask, "bias": self.given.bias}
        return {
            name: x
            for name, x in both.items()
            if x is not None and belongs(x.shape[2] != 1, x.shape[3] != 1)
        }

    def exponents(self, rows, columns, start):
        """Float32 (B, N, T, S), `HIDDEN` where masked, of keys whose first is `start`."""
        query, key = rows["query"], columns["key"]
        block = dataclasses.replace(
            self.given,
            attention_mask=self._cut("mask", self.given.attention_mask, rows, columns, start),
            query_positions=rows["positions"],
            key_positions=columns["positions"],
            segments=(rows["segments"], columns["segments"]) if "segments" in rows else None,
        )
        bias = self._cut("bias", self.given.bias, rows, columns, start)
        bias, mask = block.block(
            WholeAxis(query.shape[1]), WholeAxis(key.shape[1]), query, key, bias
        )
        scores = dense.scores_of(self.score, query, key)
        if bias is not None:
            scores = ops.cast(scores, bias.dtype) + bias
        exponents = self.normalizer.exponents(ops.cast(scores, "float32"))
        return exponents if mask is None else ops.where(mask, exponents, HIDDEN)

    def _cut(self, name, given, rows, columns, start):
        if name in columns:
            return columns[name]
        if name not in rows:
            return given
        x, size = rows[name], columns["key"].shape[1]
        return x if x.shape[3] == 1 else ops.slice(x, (0, 0, 0, start), (*x.shape[:3], size))

    def sums(self, exponents, rows, columns, reference):
        """`Σ exp(e - reference) · v` (B, N, T, Hv) and `Σ exp(e - reference)` (B, N, T, 1)."""
        powers = ops.exp(exponents - reference)
        value = columns["value"]
        weights = ops.cast(powers, value.dtype)
        output = dense.matmul_by_group(weights, ops.transpose(value, (0, 2, 1, 3)))
        if self.given.position is not None:
            more = self.given.position.values(rows["positions"], columns["positions"], weights)
            if more is not None:
                output = dense.plus(ops.transpose(output, (0, 2, 1, 3)), more)
                output = ops.transpose(output, (0, 2, 1, 3))
        return ops.cast(output, "float32"), ops.sum(powers, axis=3, keepdims=True)

    def add(self, rows, columns, start, state):
        """The state, (reference, output, total) of earlier keys, with those of `columns` added."""
        reference, output, total = state
        exponents = self.exponents(rows, columns, start)
        highest = ops.maximum(reference, ops.max(exponents, axis=3, keepdims=True))
        kept = ops.exp(reference - highest)
        more, count = self.sums(exponents, rows, columns, highest)
        return highest, output * kept + more, total * kept + count

    def normalized(self, rows, columns, start, reference):
        """The sums as a backward pass differentiates them, where all of a row are known to be 1."""
        return self.sums(self.exponents(rows, columns, start), rows, columns, reference)
