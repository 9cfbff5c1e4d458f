"""Windows of a long text as batches for language models."""

import numpy as np

from keras_attention.checks import whole_number
from keras_attention.data.extras import import_tensorflow


def language_model_batches(tokens, window_length, batch_size=32, *, steps=None, seed=0):
    """A `tf.data.Dataset` of (token ids, labels) batches for `fit` and `evaluate`.

    The label of every token is the token that follows it.

    Args:
        tokens: ints (L,), a text such as `characters.encode([text])[0]`.
        window_length: int T, the tokens that a model sees at once.
        batch_size: int B, windows per batch.
        steps: int, how many batches of windows at random places make an epoch, as in nanoGPT: for
            training. None for windows one after another, from the first token to the last, so that
            every token but the first is asked for once: for scoring.
        seed: int, of the places; every epoch has others.

    Returns:
        A dataset whose cardinality is known: int32 ids and labels (B, T). Of windows in order the
        last batch may be smaller; what its last window lacks is 0, with label -1.

    For models with a memory, whose batches go on where the last one stopped, there is
    `contiguous_segments`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.arange(1, 9)
    ids, labels = next(iter(ka.data.language_model_batches(tokens, window_length=4)))
    assert ids.numpy().tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert labels.numpy().tolist() == [[2, 3, 4, 5], [6, 7, 8, -1]]
    ids, labels = next(iter(ka.data.language_model_batches(tokens, 4, 2, steps=10)))
    assert (labels.numpy() == ids.numpy() + 1).all()
    ```
    """
    tf = import_tensorflow("language_model_batches")
    tokens = _checked(tokens)
    window_length = whole_number("language_model_batches", "window_length", window_length)
    batch_size = whole_number("language_model_batches", "batch_size", batch_size)
    if steps is None:
        ids, labels = _in_order(tokens, window_length)
        return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(batch_size).prefetch(2)
    whole_number("language_model_batches", "steps", steps)
    places = len(tokens) - window_length
    if places < 1:
        raise ValueError(
            f"The text has {len(tokens)} tokens: too few for a window of {window_length} and the "
            "token after it. Choose a smaller window_length."
        )
    text, offsets = tf.constant(tokens), tf.range(window_length + 1)

    def cut(seed):
        begins = tf.random.stateless_uniform((batch_size, 1), seed, 0, places, "int32")
        windows = tf.gather(text, begins + offsets)  # (B, T + 1)
        return windows[:, :-1], windows[:, 1:]

    # Two numbers seed a batch; every pass over the data set draws new ones.
    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(2)
    return seeds.take(steps).map(cut).prefetch(2)


def _in_order(tokens, length):
    """Ids and labels (n, T) of windows one after another."""
    count = -(-(len(tokens) - 1) // length)
    ids, labels = np.zeros(count * length, "int32"), np.full(count * length, -1, "int32")
    ids[: len(tokens) - 1], labels[: len(tokens) - 1] = tokens[:-1], tokens[1:]
    return ids.reshape(count, length), labels.reshape(count, length)


def _checked(tokens):
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or len(tokens) < 2:
        raise ValueError(
            f"language_model_batches: tokens of shape {tokens.shape} and dtype {tokens.dtype}: "
            "expected ints (L,), two or more. Make them of a text with encode([text])[0]."
        )
    return tokens.astype("int32")
