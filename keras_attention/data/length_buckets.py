"""Examples of about the same length in one batch, so that little of it is padding."""

import numpy as np

EDGES = (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512)


def bucketed(tf, lengths, batch_size, *, shuffle, seed, edges):
    """Batches of indices of examples that share a bucket, and what gathers their tokens.

    Args:
        lengths: ints (n,), of the examples.
        batch_size: int, or a function that gives it for the edge of a bucket, which is called for
            buckets that hold examples.
        edges: ints, ascending: the longest example of each bucket. Longer ones than the last share
            a bucket.

    Returns:
        A dataset of int64 indices (B,), how many batches it has, and `places`: a function from
        such indices to int32 (B, T), where each token lies if all examples lie end to end, and
        bool (B, T), whether there is one. T is the edge of the bucket.
    """
    lengths, edges = np.asarray(lengths), _edges(lengths, edges)
    counts = np.bincount(np.searchsorted(edges, lengths), minlength=len(edges))
    size_of = batch_size if callable(batch_size) else lambda edge: batch_size
    batch_sizes = [size_of(edge) if n else 1 for edge, n in zip(edges, counts, strict=True)]
    steps = int(sum(-(-counts // batch_sizes)))
    sizes = tf.constant(lengths, "int32")
    indices = tf.data.Dataset.range(len(lengths))
    if shuffle:
        indices = indices.shuffle(len(lengths), seed=seed)
    indices = indices.bucket_by_sequence_length(
        lambda i: sizes[i],
        bucket_boundaries=[edge + 1 for edge in edges],
        bucket_batch_sizes=[*batch_sizes, 1],  # nothing is longer than the last edge
        no_padding=True,
    )
    if shuffle:  # the last, smaller batch of each bucket would otherwise always end the epoch
        indices = indices.shuffle(steps, seed=seed)
    return indices, steps, places_of(tf, lengths, edges)


def places_of(tf, lengths, edges):
    """The `places` of `bucketed` for examples of these lengths.

    Any examples may share a batch: T is the next edge after the longest of them.
    """
    lengths = np.asarray(lengths)
    begins = tf.constant(np.cumsum(lengths) - lengths, "int32")
    sizes = tf.constant(lengths, "int32")
    edges = tf.constant(_edges(lengths, edges), "int32")

    def places(indices):
        size = tf.gather(sizes, indices)
        edge = tf.searchsorted(edges, tf.reduce_max(size, keepdims=True))[0]
        position = tf.range(edges[edge])
        inside = position[tf.newaxis] < size[:, tf.newaxis]  # (B, T)
        where = tf.gather(begins, indices)[:, tf.newaxis] + position
        return tf.where(inside, where, 0), inside

    return places


def _edges(lengths, edges):
    """The edges below the greatest length, and that."""
    longest = int(np.max(lengths))
    return [edge for edge in edges if edge < longest] + [longest]
