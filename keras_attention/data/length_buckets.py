"""Examples of about the same length in one batch, so that little of it is padding."""

import numpy as np

EDGES = (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512)


def bucketed(tf, lengths, batch_size, *, shuffle, seed, edges):
    """Batches of indices of examples that share a bucket, and what gathers their tokens.

    Args:
        lengths: ints (n,), of the examples.
        edges: ints, ascending: the longest example of each bucket. Longer ones than the last share
            a bucket.

    Returns:
        A dataset of int64 indices (B,), how many batches it has, and `places`: a function from
        such indices to int32 (B, T), where each token lies if all examples lie end to end, and
        bool (B, T), whether there is one. T is the edge of the bucket.
    """
    lengths = np.asarray(lengths)
    edges = [edge for edge in edges if edge < lengths.max()] + [int(lengths.max())]
    bucket = np.searchsorted(edges, lengths)
    steps = int(sum(-(-np.bincount(bucket) // batch_size)))
    sizes = tf.constant(lengths, "int32")
    indices = tf.data.Dataset.range(len(lengths))
    if shuffle:
        indices = indices.shuffle(len(lengths), seed=seed)
    indices = indices.bucket_by_sequence_length(
        lambda i: sizes[i],
        bucket_boundaries=[edge + 1 for edge in edges],
        bucket_batch_sizes=[batch_size] * (len(edges) + 1),
        no_padding=True,
    )
    if shuffle:  # the last, smaller batch of each bucket would otherwise always end the epoch
        indices = indices.shuffle(steps, seed=seed)
    return indices, steps, _places(tf, lengths, sizes, edges)


def _places(tf, lengths, sizes, edges):
    begins = tf.constant(np.cumsum(lengths) - lengths, "int32")
    edges = tf.constant(edges, "int32")

    def places(indices):
        size = tf.gather(sizes, indices)
        edge = tf.searchsorted(edges, tf.reduce_max(size, keepdims=True))[0]
        position = tf.range(edges[edge])
        inside = position[tf.newaxis] < size[:, tf.newaxis]  # (B, T)
        where = tf.gather(begins, indices)[:, tf.newaxis] + position
        return tf.where(inside, where, 0), inside

    return places
