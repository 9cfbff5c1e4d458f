"""Random augmentation of images with boxes: flips, crops, brightness and contrast."""

from keras_attention.files.extras import import_tensorflow

LEAST = 0.3  # minimum visible share of an object that is kept


def detection_augmentation(flip=True, vertical_flip=False, crop=0.3, brightness=0.2, contrast=0.2):
    """Return a function that augments images and their boxes at random, for `ka.data.batches`.

    A random part of each image is cut out and enlarged to the size of the image. An object is
    dropped if less than 0.3 of its area remains visible. Keras's own layers would keep slivers at
    the edges as objects.

    Args:
        flip: bool, whether to flip half of the images horizontally.
        vertical_flip: bool, whether to flip half of the images vertically. Useful for microscopy,
            for example.
        crop: float, the maximum share of the height and of the width that is cut off. 0 disables
            cropping.
        brightness: float, the maximum value that is added to all pixels or subtracted from them.
        contrast: float, the maximum relative change in contrast, that is, in each pixel's
            difference from the mean.

    Returns:
        A function of (images, labels, seed) that returns (images, labels). Images are float32 (B,
        H, W, C) from 0 to 1. Labels are a dict as in `DetectionPreprocessor.columns`. The seed is
        int32 (2,).

    Raises:
        ValueError: `crop`, `brightness` or `contrast` is not from 0 to below 1.

    ```python
    import numpy as np
    import keras_attention as ka

    augment = ka.data.detection_augmentation(crop=0.0, brightness=0.0, contrast=0.0)
    pixels = np.zeros((2, 4, 8, 3), "float32")
    labels = {"labels": np.zeros((2, 1), "int32"), "boxes": np.full((2, 1, 4), 0.25, "float32")}
    _, moved = augment(pixels, labels, np.array([1, 2]))
    assert set(np.unique(moved["boxes"][..., 0])) <= {0.25, 0.75}
    ```
    """
    for name, value in (("crop", crop), ("brightness", brightness), ("contrast", contrast)):
        if not 0 <= value < 1:
            raise ValueError(f"{name}={value}: expected a number from 0 to below 1.")
    tf = import_tensorflow("detection_augmentation")

    def augment(images, labels, seed):
        count = tf.shape(images)[0]

        def draw(number, shape, low, high):
            return tf.random.stateless_uniform(
                shape, tf.random.fold_in(seed, number), low, high, dtype="float32"
            )

        sides = draw(0, (count, 2), 1.0 - crop, 1.0)  # (height, width) of the part
        begin = draw(1, (count, 2), 0.0, 1.0) * (1.0 - sides)
        mirrored = draw(2, (count, 2), 0.0, 1.0) < tf.constant([vertical_flip, flip], "float32") / 2
        images = _cut_out(tf, images, begin, sides, mirrored)
        if contrast:
            mean = tf.reduce_mean(images, axis=(1, 2, 3), keepdims=True)
            images = mean + (images - mean) * draw(3, (count, 1, 1, 1), 1 - contrast, 1 + contrast)
        if brightness:
            images = images + draw(4, (count, 1, 1, 1), -brightness, brightness)
        return tf.clip_by_value(images, 0.0, 1.0), _move(tf, labels, begin, sides, mirrored)

    return augment


def _cut_out(tf, images, begin, sides, mirrored):
    """Cut out a part of each image, and enlarge the part to the size of the image.

    `begin` and `sides`, (B, 2), are the top left corner and the size of the part, as shares of
    (height, width). `mirrored` is bool (B, 2), whether to flip vertically and horizontally.
    """
    size = tuple(images.shape[1:3])
    pixels = tf.constant(size, "float32")
    # The centers of the first and the last new pixel, in units of old pixels.
    first = (begin + 0.5 * sides / pixels) * pixels - 0.5
    last = (begin + sides - 0.5 * sides / pixels) * pixels - 0.5
    first, last = tf.where(mirrored, last, first), tf.where(mirrored, first, last)
    corners = tf.concat([first, last], axis=1) / tf.tile(tf.maximum(pixels - 1.0, 1.0), [2])
    corners = tf.clip_by_value(corners, 0.0, 1.0)  # areas outside the image would be black
    return tf.image.crop_and_resize(images, corners, tf.range(tf.shape(images)[0]), size)


def _move(tf, labels, begin, sides, mirrored):
    """Move boxes as `_cut_out` moves pixels, and return the new `labels`, a dict.

    Objects that become invisible get the label -1. The other arguments are those of `_cut_out`.
    """
    boxes, numbers = labels["boxes"], labels["labels"]
    begin, sides = begin[:, None, ::-1], sides[:, None, ::-1]  # (B, 1, 2): x, y
    first = (boxes[..., :2] - boxes[..., 2:] / 2 - begin) / sides
    last = (boxes[..., :2] + boxes[..., 2:] / 2 - begin) / sides
    whole = tf.reduce_prod(last - first, axis=-1)
    first, last = tf.clip_by_value(first, 0.0, 1.0), tf.clip_by_value(last, 0.0, 1.0)
    visible = tf.reduce_prod(last - first, axis=-1)
    turned = mirrored[:, None, ::-1]
    first, last = tf.where(turned, 1.0 - last, first), tf.where(turned, 1.0 - first, last)
    is_object = tf.logical_and(numbers >= 0, visible >= LEAST * whole)
    moved = tf.concat([(first + last) / 2, last - first], axis=-1)
    return {
        "labels": tf.where(is_object, numbers, -1),
        "boxes": tf.where(is_object[..., None], moved, 0.0),
    }
