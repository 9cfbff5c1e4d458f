"""Batches of examples of about the same length, so that little of them is padding."""

import numpy as np

from keras_attention.data.shares import check_batches

EDGES = (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512)


def batch_by_length(tf, lengths, batch_size, *, shuffle, seed, edges, drop_remainder=False):
    """Batches of indices of examples that share a bucket, and what gathers their tokens.

    Args:
        lengths: ints (n,), of the examples.
        batch_size: int, or a function that gives it for the edge of a bucket, which is called for
            buckets that hold examples.
        edges: ints, ascending: the longest example of each bucket. Longer ones than the last share
            a bucket.
        drop_remainder: bool, whether the last batch of a bucket is left out where it is smaller.
            TensorFlow then knows the size of a batch, if it is the same in all buckets.

    Returns:
        A dataset of int64 indices (B,) whose cardinality is known, and `places`: a function from
        such indices, and those of them that are wanted, to int32 (B, T), where each token lies if
        all examples lie end to end, and bool (B, T), whether there is one. T is the edge of the
        bucket.
    """
    lengths, edges = np.asarray(lengths), _edges(lengths, edges)
    buckets = np.searchsorted(edges, lengths)
    counts = np.bincount(buckets, minlength=len(edges))
    size_of = batch_size if callable(batch_size) else lambda edge: batch_size
    batch_sizes = [size_of(edge) if n else 1 for edge, n in zip(edges, counts, strict=True)]
    cuts = _cuts(counts, batch_sizes, drop_remainder)
    check_batches(len(cuts))
    indices = _shuffled(tf, buckets, cuts, seed) if shuffle else _in_order(tf, buckets, cuts)
    sizes = set((cuts[:, 1] - cuts[:, 0]).tolist())
    if drop_remainder and len(sizes) == 1:
        indices = indices.map(lambda batch: tf.ensure_shape(batch, (*sizes,)))
    indices = indices.apply(tf.data.experimental.assert_cardinality(len(cuts)))
    return indices, locate_tokens(tf, lengths, edges)


def _cuts(counts, batch_sizes, drop_remainder):
    """(begin, end) of every batch (steps, 2), where examples lie bucket by bucket."""
    cuts, begin = [], 0
    for count, size in zip(counts, batch_sizes, strict=True):
        kept = count // size * size if drop_remainder else count
        begins = np.arange(begin, begin + kept, size)
        cuts.append(np.stack([begins, np.minimum(begins + size, begin + count)], axis=1))
        begin += count
    return np.concatenate(cuts)


def _in_order(tf, buckets, cuts):
    order = tf.constant(np.argsort(buckets, kind="stable"))
    return tf.data.Dataset.from_tensor_slices(cuts).map(lambda cut: order[cut[0] : cut[1]])


def _shuffled(tf, buckets, cuts, seed):
    buckets, cuts = tf.constant(buckets, "float64"), tf.constant(cuts)

    def epoch(seeds):
        # All at once: to sort an epoch takes less time than to pass it example by example.
        draw = tf.random.stateless_uniform(tf.shape(buckets), seeds[:2], dtype="float64")
        order = tf.argsort(buckets + draw)
        turn = tf.argsort(tf.random.stateless_uniform((len(cuts),), seeds[2:]))
        batches = tf.data.Dataset.from_tensor_slices(tf.gather(cuts, turn))
        return batches.map(lambda cut: order[cut[0] : cut[1]])

    # Four numbers seed an epoch; every pass over the data set draws new ones.
    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(4)
    return seeds.take(1).flat_map(epoch)


def locate_tokens(tf, lengths, edges):
    """The `places` of `batch_by_length` for examples of these lengths.

    Any examples may share a batch: T is the next edge after the longest of them.
    """
    lengths = np.asarray(lengths)
    begins = tf.constant(np.cumsum(lengths) - lengths, "int32")
    sizes = tf.constant(lengths, "int32")
    edges = tf.constant(_edges(lengths, edges), "int32")

    def places(indices, wanted):
        longest = tf.reduce_max(tf.gather(sizes, indices), keepdims=True)
        position = tf.range(edges[tf.searchsorted(edges, longest)[0]])
        inside = position[tf.newaxis] < tf.gather(sizes, wanted)[:, tf.newaxis]  # (B, T)
        where = tf.gather(begins, wanted)[:, tf.newaxis] + position
        return tf.where(inside, where, 0), inside

    return places


def _edges(lengths, edges):
    """The edges below the greatest length, and that."""
    longest = int(np.max(lengths))
    return [edge for edge in edges if edge < longest] + [longest]
