"""Labelled texts as batches of texts of about the same length."""

import numpy as np

from keras_attention.data.extras import import_tensorflow
from keras_attention.data.length_buckets import EDGES, bucketed


def text_batches(texts, preprocessor, batch_size=32, *, shuffle=False, seed=0, edges=EDGES):
    """A `tf.data.Dataset` of (token ids, labels) batches for `fit` and `evaluate`.

    Texts of about the same length share a batch, so that little of it is padding. Lengths are
    padded to the next of `edges` and so take few values: XLA compiles one program for each.

    Args:
        texts: list of `Text`.
        preprocessor: `TextPreprocessor`.
        batch_size: int, texts per batch. Every bucket may end with a smaller one.
        shuffle: bool, whether texts meet others in every epoch, in another order.
        seed: int, of that order.
        edges: ints, ascending: the longest text of each bucket. Longer ones than the last share a
            bucket.

    Returns:
        A dataset whose cardinality is known: token ids int32 (B, T), 0 at padding, and labels
        int32 (B,).

    Example:

    ```python
    import keras_attention as ka

    texts = [ka.data.Text("very good", "yes"), ka.data.Text("bad", "no"), ka.data.Text("so", "no")]
    preprocessor = ka.data.TextPreprocessor.build(texts)
    batches = ka.data.text_batches(texts, preprocessor, batch_size=2, edges=(1,))
    assert [ids.shape.as_list() for ids, _ in batches] == [[2, 1], [1, 2]]
    assert [labels.numpy().tolist() for _, labels in batches] == [[0, 0], [1]]
    ```
    """
    if not texts:
        raise ValueError("texts is empty: there is nothing to make batches of.")
    tf = import_tensorflow("text_batches")
    rows = [preprocessor.ids(text) for text, _ in texts]
    labels = tf.constant(preprocessor.labels.ids([label for _, label in texts]))
    words = tf.constant(np.concatenate(rows))
    indices, places = bucketed(
        tf, [len(row) for row in rows], batch_size, shuffle=shuffle, seed=seed, edges=edges
    )

    def gather(indices):
        where, inside = places(indices)  # (B, T)
        return tf.where(inside, tf.gather(words, where), 0), tf.gather(labels, indices)

    return indices.map(gather).prefetch(2)
