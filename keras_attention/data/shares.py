"""Shares of batches: in distributed training, each process reads only its own rows."""

import dataclasses

# Attribute of a dataset, a function of a `Share`: builds only the rows that a process needs.
MAKER = "_make_share"


@dataclasses.dataclass(frozen=True)
class Share:
    """The rows of every batch that one process reads, in training with several processes.

    If a batch cannot be divided into equal parts, each process reads the whole batch.

    Attributes:
        parts: int, the number of equal parts of a batch.
        own: tuple of ascending ints, the indices of the parts that this process reads. Several
            processes may read the same part.
    """

    parts: int
    own: tuple

    def rows(self, count):
        """Return the indices of this process's rows in a batch of `count` rows."""
        size, remainder = divmod(count, self.parts)
        return range(count) if remainder else [k * size + i for k in self.own for i in range(size)]

    def take(self, tf, batch):
        """Return this process's rows of a batch, a tensor (B, ...) or nested dicts of tensors.

        `tf` is the module tensorflow.
        """
        first = tf.nest.flatten(batch)[0]
        count = tf.shape(first)[0]
        size = count // self.parts
        own = tf.concat([tf.range(k * size, (k + 1) * size) for k in self.own], axis=0)
        rows = tf.cond(tf.equal(size * self.parts, count), lambda: own, lambda: tf.range(count))
        return tf.nest.map_structure(lambda array: tf.gather(array, rows), batch)


def read_share(tf, batches, share):
    """Read only one process's rows of a dataset, a `tf.data.Dataset` of batches.

    Return a dataset with a pair for each batch: the rows in `share`, and the int32 size of the
    whole batch. Datasets of `ka.data.batches` build only these rows. For other datasets, whole
    batches are built and then sliced.
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
    """Make a dataset of batches, such that `read_share` can build only a share of each batch.

    Args:
        tf: the module `tensorflow`.
        indices: dataset of int64 (B,), the indices of the examples in each batch.
        gather: function that returns a structure of tensors. Its arguments are the indices of all
            examples in a batch, and the indices of those to read. Tensors have one row for each
            example to read, padded to the length of the whole batch.
    """
    size = indices.element_spec.shape[0]

    def whole(batch):
        return set_rows(tf, gather(batch, batch), size)

    def make(share):
        def part(batch):
            return gather(batch, share.take(tf, batch)), tf.shape(batch)[0]

        return indices.map(part).prefetch(2)

    batches = indices.map(whole).prefetch(2)
    setattr(batches, MAKER, make)
    return batches


def set_rows(tf, batch, size):
    """Return `batch`, with a static size of the first axis of its tensors.

    `size` is an int, or None to leave the size dynamic. `tf` is the module tensorflow, and `batch`
    a tensor, or nested dicts of tensors.
    """
    if size is None:
        return batch
    return tf.nest.map_structure(lambda x: tf.ensure_shape(x, (size, *x.shape[1:])), batch)


def check_batches(count):
    """Raise a ValueError if `drop_remainder` leaves no batches. `count` is their number."""
    if not count:
        raise ValueError(
            "drop_remainder=True leaves no batch of any length: give a smaller batch_size."
        )
