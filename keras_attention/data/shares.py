"""Shares of batches: of several processes that train together, each reads rows of its own."""

import dataclasses

# Of a dataset, the function that makes the share of a process without the rows of others.
MAKER = "_make_share"


@dataclasses.dataclass(frozen=True)
class Share:
    """The rows of every batch that one process reads.

    Attributes:
        parts: int, how many equal parts a batch has.
        own: tuple of ints, ascending, those of the process. Processes may share a part.

    A batch that does not have so many equal parts is read whole by each process.
    """

    parts: int
    own: tuple

    def rows(self, count):
        """Return the same as numbers of rows, of a batch that has `count`."""
        size, remainder = divmod(count, self.parts)
        return range(count) if remainder else [k * size + i for k in self.own for i in range(size)]

    def take(self, tf, batch):
        """Return the rows of the process of a batch: a tensor (B, ...), or a structure of such."""
        first = tf.nest.flatten(batch)[0]
        count = tf.shape(first)[0]
        size = count // self.parts
        own = tf.concat([tf.range(k * size, (k + 1) * size) for k in self.own], axis=0)
        rows = tf.cond(tf.equal(size * self.parts, count), lambda: own, lambda: tf.range(count))
        return tf.nest.map_structure(lambda array: tf.gather(array, rows), batch)


def read_share(tf, batches, share):
    """Return the share of a process in a `tf.data.Dataset` of batches.

    The datasets of `ka.data` make no more than its rows, all others whole batches, which are cut.

    Returns:
        A dataset of pairs: the rows of a batch, and an int32, how many the whole batch has.
    """
    make = getattr(batches, MAKER, None)
    if make is not None:
        return make(share)
    several = isinstance(batches.element_spec, tuple)

    def cut(*batch):
        batch = batch if several else batch[0]
        return share.take(tf, batch), tf.shape(tf.nest.flatten(batch)[0])[0]

    return batches.map(cut).prefetch(2)


def gather_batches(tf, indices, gather):
    """Return a dataset of the batches that `gather` makes of indices, and of shares of them.

    Args:
        indices: dataset of int64 (B,), the examples of each batch.
        gather: function from the indices of a batch, and of those of its examples that are wanted,
            to a structure of tensors whose first axis is that of the latter. Lengths are those of
            the whole batch.
    """
    size = indices.element_spec.shape[0]

    def whole(batch):
        return set_rows(tf, gather(batch, batch), size)

    def make(share):
        def part(batch):
            return gather(batch, share.take(tf, batch)), tf.shape(batch)[0]

        return indices.map(part).prefetch(2)

    return make_in_shares(indices.map(whole).prefetch(2), make)


def make_in_shares(batches, make):
    """Return `batches`, of which `make(share)` gives what `read_share` does."""
    setattr(batches, MAKER, make)
    return batches


def set_rows(tf, batch, size):
    """Return `batch` with a static first axis, where `size` is no None."""
    if size is None:
        return batch
    return tf.nest.map_structure(lambda x: tf.ensure_shape(x, (size, *x.shape[1:])), batch)


def check_batches(count):
    """Refuses `drop_remainder` where no batch is left."""
    if not count:
        raise ValueError(
            "drop_remainder=True leaves no batch: there are fewer examples of any length than a "
            "batch has. Give a smaller batch_size."
        )
