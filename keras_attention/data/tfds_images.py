"""Images out of TensorFlow Datasets."""

import numpy as np

from keras_attention.data.images import Images


def check_image_size(builder, columns, name, image_size):
    """Refuses images that differ in size, unless they are to be resized."""
    shape = builder.info.features[columns.inputs].shape
    if image_size is None and None in shape:
        raise ValueError(
            f"The images of {name} differ in size (shape {shape}): give image_size=(height, width)."
        )


def read_images(builder, columns, splits, *, image_size, dev_fraction, seed):
    """An `Images` of the splits, whose values are TFDS's words for them, or None."""
    read = {
        part: _read(builder, columns, words, image_size) if words else None
        for part, words in splits.items()
    }
    labels = builder.info.features[columns.label].names
    return Images.from_arrays(**read, labels=labels, dev_fraction=dev_fraction, seed=seed)


def _read(builder, columns, split, image_size):
    """uint8 images (n, H, W, C) and labels (n,)."""
    wanted = (columns.inputs, columns.label)
    dataset = builder.as_dataset(split=split).map(lambda x: {name: x[name] for name in wanted})
    if image_size is not None:
        dataset = dataset.map(lambda example: _resized(example, columns.inputs, image_size))
    parts = list(dataset.batch(1024).as_numpy_iterator())
    return tuple(np.concatenate([part[name] for part in parts]) for name in wanted)


def _resized(example, column, size):
    import tensorflow as tf

    image = tf.image.resize(example[column], size, antialias=True)
    return {**example, column: tf.cast(tf.clip_by_value(tf.round(image), 0, 255), "uint8")}
