"""`FilterAugment`: varies the volume and the timbre of recordings in training."""

import math

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments

NATS = math.log(10.0) / 10.0  # one decibel as a natural logarithm of power


@keras.saving.register_keras_serializable(package="keras_attention")
class FilterAugment(OwnArguments, keras.layers.Layer):
    """Applies a random acoustic filter to each utterance in training (Nam et al., 2022).

    The filter adds one gain to all frequencies, plus a gain that varies with the frequency. The
    second gain is random at the edges of `num_bands` bands of equal width and interpolated linearly
    in between, as in the linear type of the paper. With this layer, a model depends less on the
    volume and the timbre of a few speakers and rooms.

    Args:
        gain: float, the maximum change of the volume, in decibels.
        band_gain: float, the maximum gain at the edge of a band, in decibels. The paper uses 6.
        num_bands: int, the number of bands.
        floor: float, features up to this value count as silence and are not changed.
        seed: int, the seed of the random numbers. None draws a new seed.

    Call arguments:
        inputs: float (B, T, F), natural logarithms of F powers for each of T frames, such as the
            output of a `LogMelSpectrogram` with the settings `"kaldi"`.
        training: bool. If it is not True, the inputs are returned unchanged.

    Returns (B, T, F), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FilterAugment(gain=10.0, band_gain=0.0, seed=1)
    features = np.zeros((2, 50, 40), "float32")
    louder = np.array(layer(features, training=True))
    assert np.all(louder == louder[:, :1, :1]) and 0 < np.abs(louder).max() < 2.4
    assert np.all(layer(features) == 0)
    ```
    """

    own_arguments = ("gain", "band_gain", "num_bands", "floor", "seed")

    def __init__(self, gain=12.0, band_gain=6.0, num_bands=4, floor=-10.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.gain, self.band_gain, self.num_bands, self.floor = gain, band_gain, num_bands, floor
        checks.check_number(self, "gain", least=0)
        checks.check_number(self, "band_gain", least=0)
        checks.check_whole_numbers(self, "num_bands")
        checks.check_number(self, "floor")
        self.seed = seed
        self._generator = keras.random.SeedGenerator(seed)

    def call(self, inputs, training=None):
        if not training:
            return inputs
        rows, bounds = ops.shape(inputs)[0], self.num_bands + 1
        drawn = keras.random.uniform((rows, 1 + bounds), -1.0, 1.0, "float32", self._generator)
        gains = self.gain * drawn[:, :1] + self.band_gain * ops.matmul(
            drawn[:, 1:], make_lines(bounds, inputs.shape[-1])
        )
        louder = inputs + ops.cast(ops.expand_dims(NATS * gains, axis=1), inputs.dtype)
        return ops.where(ops.greater(inputs, ops.cast(self.floor, inputs.dtype)), louder, inputs)

    def compute_output_shape(self, input_shape):
        return input_shape


def make_lines(bounds, features):
    """Return a matrix that interpolates values at the edges of bands to values for each feature.

    `bounds` and `features` are ints, the numbers of edges and features. The result is float32
    (bounds, features).
    """
    position = np.linspace(0.0, bounds - 1.0, features)
    distance = np.abs(position[None] - np.arange(bounds)[:, None])
    return np.maximum(1.0 - distance, 0.0).astype("float32")
