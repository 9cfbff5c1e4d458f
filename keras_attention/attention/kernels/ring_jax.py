"""Ring attention in JAX: keys and values travel from device to device, and so do their gradients.

At each hop, a device adds one tile: the attention of its own queries to the keys that arrived. The
backward pass repeats the hops, and the gradients of the keys travel with the keys.

The weights of a query are `exp(e - L)`, where e are its exponents (the masked scores) and
`L = log Σ exp(e)`. Let o be its output and g the upstream gradient. The gradient of an exponent e
for a value v is `exp(e - L) (g · v - g · o)` (Dao et al., 2022, appendix B.2). JAX computes it by
differentiating the two sums of a tile with L held constant, with g and `-g · o` as their upstream
gradients.
"""

import jax
import jax.numpy as jnp
import keras
from jax.sharding import PartitionSpec
from keras import ops

from keras_attention.attention.kernels.ring_tile import COLUMN_AXES, LOWEST, ROW_AXES
from keras_attention.core.token_layout import SEQUENCE, count_sequence_devices

LEAST_ROWS, MOST_ROWS = 64, 256  # bounds on the number of queries in a tile


def go_around(tile, rows, columns, reach=None):
    """Compute attention over a whole sequence that is split among devices: (B, T, N, Hv).

    Args:
        tile: the `Tile` that computes attention of one device's queries to another device's keys.
        rows: dict of tensors with a query axis, from `Tile.rows`.
        columns: dict of tensors with a key axis, from `Tile.columns`.
        reach: the `Reach` (bounds) of the mask if tokens' positions are their indices, or None.
    """
    sink = tile.equation.normalizer.sink
    sink = LOWEST if sink is None else sink
    sink = ops.reshape(ops.cast(ops.convert_to_tensor(sink), "float32"), (1, -1, 1, 1))
    return jax.jit(_Ring(tile, rows, columns, reach))(rows, columns, sink)


class _Ring:
    def __init__(self, tile, rows, columns, reach):
        self.devices, self.reach = count_sequence_devices(), reach
        self.mesh = keras.distribution.distribution().device_mesh.backend_mesh
        self.length = rows["query"].shape[1] // self.devices
        self.keys = columns["key"].shape[1] // self.devices
        self.size = choose_rows(self.length)
        self.first, self.hops = plan_hops(self.devices, self.length, self.keys, reach)
        # The tile's two functions, with the arrays that they close over (weights) as arguments.
        rows = {name: _resize(x, ROW_AXES[name], self.size) for name, x in rows.items()}
        columns = {name: _resize(x, COLUMN_AXES[name], self.keys) for name, x in columns.items()}
        batch, _, heads, _ = rows["query"].shape
        number = jax.ShapeDtypeStruct((batch, heads, self.size, 1), "float32")
        width, self.dtype = columns["value"].shape[3], columns["value"].dtype
        output = jax.ShapeDtypeStruct((*number.shape[:3], width), "float32")
        start = jax.ShapeDtypeStruct((), "int32")
        self.state = (number, output, number)
        kinds = [
            jax.sharding.AxisType.Manual if name == SEQUENCE else jax.sharding.AxisType.Auto
            for name in self.mesh.axis_names
        ]
        mesh = self.mesh.abstract_mesh.update(axis_types=tuple(kinds))  # as inside `shard_map`
        with jax.sharding.use_abstract_mesh(mesh):
            self.add, added = _open_closure(tile.add, rows, columns, start, self.state)
            self.sums, summed = _open_closure(tile.normalized, rows, columns, start, number)
        self.read = (added, summed)

    def __call__(self, rows, columns, sink):
        specs = (_specs(rows, ROW_AXES), _specs(columns, COLUMN_AXES), WHOLE, WHOLE)
        floats = (_specs(_floats(rows), ROW_AXES), _specs(_floats(columns), COLUMN_AXES))
        by_length, by_head = _along(1, 4), _along(2, 4)
        compute = self._share(self._forward, specs, (by_length, by_head))
        differentiate = self._share(
            self._backward, (*specs, by_length, by_head, by_length), (*floats, WHOLE, WHOLE)
        )

        @jax.custom_vjp
        def attention(rows, columns, read, sink):
            return forward(rows, columns, read, sink)[0]

        def forward(rows, columns, read, sink):
            output, last = compute(rows, columns, read[0], sink)
            return output, (rows, columns, read, sink, output, last)

        def backward(saved, upstream):
            rows, columns, (added, summed), sink, *results = saved
            gradients = differentiate(rows, columns, summed, sink, *results, upstream)
            of_rows, of_columns, of_floats, of_sink = gradients
            of_floats = iter(of_floats)
            of_summed = [next(of_floats) if _is_float(x) else None for x in summed]
            return (
                {name: of_rows.get(name) for name in rows},
                {name: of_columns.get(name) for name in columns},
                ([None] * len(added), of_summed),
                of_sink,
            )

        attention.defvjp(forward, backward)
        return attention(rows, columns, self.read, sink)

    def _share(self, function, in_specs, out_specs):
        """Return a function that applies `function` to each device's part of the sequence.

        `in_specs` and `out_specs` are the JAX `PartitionSpec`s of its arguments and results. The
        compiler chooses how other axes are split over devices.
        """
        return jax.shard_map(
            function,
            mesh=self.mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names={SEQUENCE},
            check_vma=False,
        )

    def _forward(self, rows, columns, read, sink):
        """Compute a device's output (B, T, N, Hv), and its log of each sum of exp, (B, N, T, 1).

        Args:
            rows, columns: dicts of this device's tensors of queries and of keys.
            read: list of the weights and other arrays that the equation reads.
            sink: the learned scores in the softmax's denominator.
        """
        rows = self._slice_rows(rows)
        count = self.length // self.size
        reference, output, total = (jnp.zeros((count, *x.shape), x.dtype) for x in self.state)

        def hop(columns, _, state, start):
            def add(_, one):
                return None, self.add(read, one[0], columns, start, one[1])

            return None, jax.lax.scan(add, None, (rows, state))[1]

        state = (reference + LOWEST, output, total)
        _, (reference, output, total) = self._travel(columns, None, state, hop)
        highest = jnp.maximum(reference, sink)
        factor = jnp.exp(reference - highest)
        total = total * factor + jnp.exp(sink - highest)
        output = _join(output * factor / total, 2)
        return jnp.swapaxes(output, 1, 2).astype(self.dtype), _join(highest + jnp.log(total), 2)

    def _backward(self, rows, columns, read, sink, output, last, upstream):
        """Compute a device's gradients of float rows, columns, arrays in `read`, and the sink.

        `output` and `last` are the results of `_forward`, and `upstream` is the output's gradient.
        The other arguments are those of `_forward`.
        """
        output, upstream = (jnp.swapaxes(x, 1, 2).astype("float32") for x in (output, upstream))
        inner = -jnp.sum(upstream * output, axis=3, keepdims=True)  # (B, N, T, 1)
        slices = [_split(x, 2, self.size) for x in (last, upstream, inner)]
        sliced = self._slice_rows(rows)

        def hop(columns, of_columns, state, start):
            def of_slice(carry, one):
                rows, (last, upstream, inner), of_rows = one
                floats = (_floats(rows), _floats(columns), [x for x in read if _is_float(x)])

                def sums(of_rows, of_columns, of_read):
                    of_read = iter(of_read)
                    filled = [next(of_read) if _is_float(x) else x for x in read]
                    return self.sums(filled, rows | of_rows, columns | of_columns, start, last)

                of_row, *more = jax.vjp(sums, *floats)[1]((upstream, inner))
                return jax.tree.map(_add, carry, tuple(more)), jax.tree.map(_add, of_rows, of_row)

            of_rows, of_read = state
            (of_columns, of_read), of_rows = jax.lax.scan(
                of_slice, (of_columns, of_read), (sliced, slices, of_rows)
            )
            return of_columns, (of_rows, of_read)

        of_read = _zeros([x for x in read if _is_float(x)])
        state = (_zeros(_floats(sliced)), of_read)
        of_columns, (of_rows, of_read) = self._travel(columns, _zeros(_floats(columns)), state, hop)
        of_rows = {name: _join(x, ROW_AXES[name]) for name, x in of_rows.items()}
        of_read = [jax.lax.psum(x, SEQUENCE) for x in of_read]
        of_sink = jnp.sum(jnp.exp(sink - last) * inner, axis=(0, 2, 3), keepdims=True)
        of_sink = of_sink if sink.shape[1] > 1 else jnp.sum(of_sink, axis=1, keepdims=True)
        return (
            {name: x.astype(rows[name].dtype) for name, x in of_rows.items()},
            {name: x.astype(columns[name].dtype) for name, x in of_columns.items()},
            [x.astype(y.dtype) for x, y in zip(of_read, filter(_is_float, read), strict=True)],
            jax.lax.psum(of_sink, SEQUENCE),
        )

    def _travel(self, columns, collected, state, hop):
        """Send the keys around the ring, and call `hop` for the keys that arrive at each step.

        `hop(columns, collected, state, start)` returns new values of `collected` and `state`.
        `collected` travels with the keys (`columns`), and returns to their device at the end.
        `start` is the index of the first key.

        Return the last values of `collected` and `state`.
        """
        device = jax.lax.axis_index(SEQUENCE)

        def compute(columns, collected, state, number):
            origin = (device - self.first - number) % self.devices
            start = (origin * self.keys).astype("int32")
            if self.reach is None:
                return hop(columns, collected, state, start)
            return jax.lax.cond(
                self._is_seen(start, device * self.length),
                lambda collected, state: hop(columns, collected, state, start),
                lambda collected, state: (collected, state),
                collected,
                state,
            )

        def step(carry, number):
            columns, collected, state = carry
            following = self._shift(columns, 1)  # sent while `compute` runs
            collected, state = compute(columns, collected, state, number)
            return (following, self._shift(collected, 1), state), None

        columns, last = self._shift(columns, self.first), self.hops - 1
        if last:
            carry = (columns, collected, state)
            (columns, collected, state), _ = jax.lax.scan(step, carry, jnp.arange(last))
        collected, state = compute(columns, collected, state, last)
        return self._shift(collected, -(self.first + last)), state

    def _is_seen(self, key, query):
        """Return whether any query of a tile may see any of its keys.

        `query` and `key` are the indices of the tile's first query and first key.
        """
        seen = jnp.bool_(True)
        if self.reach.right is not None:
            seen &= key - (query + self.length - 1) <= self.reach.right
        if self.reach.left is not None:
            seen &= key + self.keys - 1 - query >= -self.reach.left
        return seen

    def _shift(self, arrays, steps):
        """Send `arrays` to the device `steps` ahead in the ring, and return the received arrays."""
        steps %= self.devices
        if not steps:
            return arrays
        pairs = [(i, (i + steps) % self.devices) for i in range(self.devices)]
        return jax.tree.map(lambda x: jax.lax.ppermute(x, SEQUENCE, pairs), arrays)

    def _slice_rows(self, rows):
        """Split each tensor of queries into slices, stacked along a new first axis."""
        return {name: _split(x, ROW_AXES[name], self.size) for name, x in rows.items()}


def choose_rows(length):
    """Return the number of queries in a slice: a divisor of `length` within bounds, or `length`."""
    for size in range(min(length, MOST_ROWS), LEAST_ROWS - 1, -1):
        if length % size == 0:
            return size
    return length


def plan_hops(devices, length, keys, reach=None):
    """Plan the hops of the keys around the ring, and skip hops that the mask makes useless.

    Args:
        devices: int, the number of devices in the ring.
        length: int, the number of queries on each device.
        keys: int, the number of keys on each device.
        reach: a `Reach` (the mask's bounds) without global tokens, or None if it is unbounded.

    Returns:
        The distance in the ring to the device whose keys come first, and the number of hops.
    """
    if reach is None:
        return 0, devices
    needed = set()
    for device in range(devices):
        for origin in range(devices):
            farthest = (origin + 1) * keys - 1 - device * length  # the maximum of key - query
            nearest = origin * keys - (device + 1) * length + 1  # the minimum of key - query
            ahead = reach.right is None or nearest <= reach.right
            back = reach.left is None or farthest >= -reach.left
            if ahead and back:
                needed.add((device - origin) % devices)
    needed = sorted(needed) or [0]
    gaps = [
        ((following - hop - 1) % devices, following)
        for hop, following in zip(needed, [*needed[1:], needed[0]], strict=True)
    ]
    skipped, first = max(gaps)
    return (0, devices) if len(needed) == devices else (first, devices - skipped)


def _open_closure(function, *shapes):
    """Convert the arrays that `function` closes over to an argument.

    Return a function `call(arrays, *arguments)`, and the list of these arrays. `shapes` are the
    shapes of the arguments.
    """
    closed, made = jax.make_jaxpr(function, return_shape=True)(*shapes)

    def call(read, *arguments):
        leaves = jax.core.eval_jaxpr(closed.jaxpr, read, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(made), leaves)

    return call, list(closed.consts)


WHOLE = PartitionSpec()


def _along(axis, rank):
    """Return the `PartitionSpec` of an array whose `axis` is split among the devices."""
    split = [None] * rank
    split[axis] = SEQUENCE
    return PartitionSpec(*split)


def _specs(arrays, axes):
    return {name: _along(axes[name], x.ndim) for name, x in arrays.items()}


def _resize(x, axis, size):
    """Return shape and dtype of `x`, with `size` as the size of `axis`."""
    shape = list(x.shape)
    shape[axis] = size
    return jax.ShapeDtypeStruct(tuple(shape), x.dtype)


def _split(x, axis, size):
    """Split an axis of length T: (..., T, ...) to (T / size, ..., size, ...)."""
    axis %= x.ndim
    x = x.reshape(*x.shape[:axis], -1, size, *x.shape[axis + 1 :])
    return jnp.moveaxis(x, axis, 0)


def _join(x, axis):
    """Undo `_split`. `axis` is the axis of length T in the result."""
    axis %= x.ndim - 1
    x = jnp.moveaxis(x, 0, axis)
    return x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :])


def _is_float(x):
    return jnp.issubdtype(x.dtype, jnp.floating)


def _floats(arrays):
    return {name: x for name, x in arrays.items() if _is_float(x)}


def _zeros(arrays):
    return jax.tree.map(lambda x: jnp.zeros(x.shape, "float32"), arrays)


def _add(total, x):
    return total + x.astype(total.dtype)
