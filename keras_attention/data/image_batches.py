"""Images as batches."""

from keras_attention.data.extras import import_tensorflow
from keras_attention.data.images import split_of


def image_batches(split, batch_size=32, *, shuffle=False, seed=0, augment=None):
    """A `tf.data.Dataset` of (images, labels) batches for `fit` and `evaluate`.

    Args:
        split: `ImageSplit`, or a pair of arrays: images (n, H, W, C), uint8 or floats from 0 to 1,
            and int labels (n,).
        batch_size: int; the last batch may be smaller.
        shuffle: bool, whether every epoch has another order.
        seed: int, of that order.
        augment: a function of images (B, H, W, C), such as `ka.data.image_augmentation()`, run
            as in training: for training only.

    Returns:
        A dataset whose cardinality is known: float32 images (B, H, W, C) from 0 to 1, and int32
        labels (B,).

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pixels = np.full((5, 4, 4, 3), 255, "uint8")
    batches = ka.data.image_batches((pixels, np.arange(5)), batch_size=2, shuffle=True)
    images, labels = next(iter(batches))
    assert images.shape == (2, 4, 4, 3) and float(images[0, 0, 0, 0]) == 1.0 and len(batches) == 3
    ```
    """
    tf = import_tensorflow("image_batches")
    pixels, labels = split_of(*split)
    if not len(labels):
        raise ValueError("The split is empty: there is nothing to make batches of.")
    scale = 255.0 if pixels.dtype == "uint8" else 1.0
    pixels, labels = tf.constant(pixels), tf.constant(labels)
    indices = tf.data.Dataset.range(len(labels))
    if shuffle:
        indices = indices.shuffle(len(labels), seed=seed)

    def gather(index):
        images = tf.cast(tf.gather(pixels, index), "float32") / scale
        images = images if augment is None else augment(images, training=True)
        return images, tf.gather(labels, index)

    # One at a time, so that a seeded augmentation is the same in every run.
    return indices.batch(batch_size).map(gather).prefetch(2)
