"""Light image augmentation, of Keras's own layers."""

import keras


def image_augmentation(shift=0.08, flip=False, seed=0):
    """Moves every image a little, black coming in, and mirrors half of them if asked to.

    Args:
        shift: float, the farthest move as a share of height and width.
        flip: bool, whether left and right may be exchanged: right for clothes, wrong for digits.
        seed: int.

    Returns:
        A `keras.layers.Pipeline` of Keras's preprocessing layers, for `image_batches(augment=)`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pixels = np.full((4, 8, 8, 1), 255, "uint8")
    augment = ka.data.image_augmentation(shift=0.25, flip=True)
    images, _ = next(iter(ka.data.image_batches((pixels, np.zeros(4)), 4, augment=augment)))
    assert set(np.unique(images)) == {0.0, 1.0}
    ```
    """
    layers = keras.layers
    # Nearest, because between pixels the default would blur small images.
    steps = [
        layers.RandomTranslation(
            shift, shift, fill_mode="constant", interpolation="nearest", seed=seed
        )
    ]
    if flip:
        steps.append(layers.RandomFlip("horizontal", seed=seed))
    return layers.Pipeline(steps)
