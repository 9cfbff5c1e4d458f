"""Pairs of texts as batches for teacher forcing, of pairs of about the same length."""

import numpy as np

from keras_attention.checks import whole_number
from keras_attention.data.extras import import_tensorflow
from keras_attention.data.length_buckets import EDGES, bucketed, places_of


def seq2seq_batches(
    pairs, preprocessor, batch_size=64, *, max_tokens=None, shuffle=False, seed=0, edges=EDGES
):
    """A `tf.data.Dataset` of (inputs, labels) batches for `fit` and `evaluate`.

    The decoder is given the target from BEGIN on, and is asked at every place for the token that
    follows, END at last. Pairs whose longer side is of about the same length share a batch, so
    that little of it is padding. Both sides are padded to the next of `edges` and so take few
    lengths: XLA compiles one program for each two of them.

    Args:
        pairs: list of `Pair`, or of any (source, target) with more behind, as `WrittenDate`.
        preprocessor: `SequencePreprocessor` with a source.
        batch_size: int, the most pairs in a batch. Every bucket may end with a smaller batch.
        max_tokens: int, the most tokens of a batch, padding included, on its longer side; where
            they are long, fewer pairs than `batch_size` share a batch. None for no such limit.
        shuffle: bool, whether pairs meet others in every epoch, in another order.
        seed: int, of that order.
        edges: ints, ascending: the longest pair of each bucket, BEGIN or END included. Longer ones
            than the last share a bucket.

    Returns:
        A dataset whose cardinality is known. Inputs are int32 `{"source_ids": (B, S),
        "target_ids": (B, T)}`, 0 at padding; labels are int32 (B, T), -1 at padding.

    Example:

    ```python
    import keras_attention as ka

    dates = ka.data.dates("train", 8, locales=("de", "en"))
    characters = ka.data.Characters.build([text for date in dates for text in date[:2]])
    preprocessor = ka.data.SequencePreprocessor(characters, characters)
    inputs, labels = next(iter(ka.data.seq2seq_batches(dates, preprocessor, 4)))
    assert inputs["target_ids"].shape == labels.shape == (4, 11)  # BEGIN, or END, and 2024-03-04
    assert preprocessor.texts(labels.numpy())[0] in [date.iso for date in dates]
    ```
    """
    if not pairs:
        raise ValueError("pairs is empty: there is nothing to make batches of.")
    whole_number("seq2seq_batches", "batch_size", batch_size)
    tf = import_tensorflow("seq2seq_batches")
    sources = preprocessor.source_ids([pair[0] for pair in pairs])
    targets = preprocessor.target_ids([pair[1] for pair in pairs])
    lengths = [max(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]
    sizes = _sizes(batch_size, max_tokens)
    indices, _ = bucketed(tf, lengths, sizes, shuffle=shuffle, seed=seed, edges=edges)
    return indices.map(_gather(tf, sources, targets, edges)).prefetch(2)


def _gather(tf, sources, targets, edges):
    """A function from indices (B,) of pairs to their (inputs, labels)."""
    source_places = places_of(tf, [len(row) for row in sources], edges)
    target_places = places_of(tf, [len(row) - 1 for row in targets], edges)
    source_ids = tf.constant(np.concatenate(sources))
    target_ids = tf.constant(np.concatenate([row[:-1] for row in targets]))
    following = tf.constant(np.concatenate([row[1:] for row in targets]))

    def gather(indices):
        where, inside = source_places(indices)  # (B, S)
        inputs = {"source_ids": tf.where(inside, tf.gather(source_ids, where), 0)}
        where, inside = target_places(indices)  # (B, T)
        inputs["target_ids"] = tf.where(inside, tf.gather(target_ids, where), 0)
        return inputs, tf.where(inside, tf.gather(following, where), -1)

    return gather


def _sizes(batch_size, max_tokens):
    """How many pairs share a batch, for the length that a bucket is padded to."""
    if max_tokens is None:
        return lambda edge: batch_size
    whole_number("seq2seq_batches", "max_tokens", max_tokens)

    def size(edge):
        if edge > max_tokens:
            raise ValueError(
                f"max_tokens={max_tokens}: the longest pairs are padded to {edge} tokens. Give "
                f"{edge} or more, or leave out long pairs."
            )
        return min(batch_size, max_tokens // edge)

    return size
