"""Tagged sentences as batches of sentences of about the same length."""

from keras_attention.data.extras import import_tensorflow
from keras_attention.data.length_buckets import EDGES, bucketed


def tagging_batches(sentences, preprocessor, batch_size=32, *, shuffle=False, seed=0, edges=EDGES):
    """A `tf.data.Dataset` of (inputs, labels) batches for `fit` and `evaluate`.

    Sentences of about the same length share a batch, so that little of it is padding. Lengths are
    padded to the next of `edges` and so take few values: XLA compiles one program for each.

    Args:
        sentences: list of `Sentence`.
        preprocessor: `TaggerPreprocessor`.
        batch_size: int, sentences per batch. Every bucket may end with a smaller one.
        shuffle: bool, whether sentences meet others in every epoch, in another order.
        seed: int, of that order.
        edges: ints, ascending: the longest sentence of each bucket. Longer ones than the last
            share a bucket.

    Returns:
        A dataset whose cardinality is known. Inputs are what `preprocessor` gives; labels are
        int32 (B, T), -1 at padding.

    Example:

    ```python
    import keras_attention as ka

    sentences = [ka.data.Sentence(("a",) * n, ("X",) * n) for n in (1, 2, 9)]
    preprocessor = ka.data.TaggerPreprocessor.build(sentences, characters=False)
    batches = ka.data.tagging_batches(sentences, preprocessor, batch_size=2)
    assert [labels.shape.as_list() for _, labels in batches] == [[2, 8], [1, 9]]
    assert len(batches) == 2
    ```
    """
    if not sentences:
        raise ValueError("sentences is empty: there is nothing to make batches of.")
    tf = import_tensorflow("tagging_batches")
    lengths = [len(sentence.tokens) for sentence in sentences]
    indices, places = bucketed(tf, lengths, batch_size, shuffle=shuffle, seed=seed, edges=edges)
    return indices.map(_gather(tf, sentences, preprocessor, places)).prefetch(2)


def _check_tags(sentences, labels):
    """Refuses a tag that is no label, and says where it stands."""
    known = set(labels.names)
    for number, sentence in enumerate(sentences, start=1):
        for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
            if tag not in known:
                raise ValueError(
                    f"Sentence {number} tags {token!r} as {tag!r}, which is not among the labels: "
                    f"{', '.join(labels.names)}."
                )


def _gather(tf, sentences, preprocessor, places):
    """A function from indices (B,) of sentences to their (inputs, labels)."""
    # All sentences lie end to end; a batch is gathered from where each begins.
    tokens = [token for sentence in sentences for token in sentence.tokens]
    tags = [tag for sentence in sentences for tag in sentence.tags]
    _check_tags(sentences, preprocessor.labels)
    words = tf.constant(preprocessor.words.ids(tokens))
    labels = tf.constant(preprocessor.labels.ids(tags))
    characters = tf.constant(preprocessor.spell(tokens)) if preprocessor.characters else None

    def gather(indices):
        where, inside = places(indices)  # (B, T)
        token_ids = tf.where(inside, tf.gather(words, where), 0)
        label_ids = tf.where(inside, tf.gather(labels, where), -1)
        if characters is None:
            return token_ids, label_ids
        character_ids = tf.gather(characters, where) * tf.cast(inside[:, :, tf.newaxis], "int32")
        return {"token_ids": token_ids, "character_ids": character_ids}, label_ids

    return gather
