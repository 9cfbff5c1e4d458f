"""FilterAugment: louder, softer, brighter and duller recordings of what training has."""

import math

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments

NATS = math.log(10.0) / 10.0  # of power, that make a decibel


@keras.saving.register_keras_serializable(package="keras_attention")
class FilterAugment(OwnArguments, keras.layers.Layer):
    """Draws a filter for each utterance in training, as a room would be (Nam et al., 2022).

    A gain for all frequencies, and on top of it gains at the bounds of bands, between which they
    rise and fall in a line: the paper's linear kind, with bands of equal widths. So a model does
    not learn how loud and how bright the few are whom it hears.

    Args:
        gain: float, in decibels: an utterance is louder or softer by at most as many.
        band_gain: float, in decibels, likewise of a bound between bands. The paper takes 6.
        num_bands: int, of all features.
        floor: float, features of at most as much are silence, which stays.
        seed: int.

    Call arguments:
        inputs: float (B, T, F), natural logarithms of powers, as a `LogMelSpectrogram` of Kaldi's
            settings gives them.
        training: bool; without it nothing happens.

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

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)


def make_lines(bounds, features):
    """What each of the features has of each bound, float32 (bounds, F): two, which add up to 1."""
    place = np.linspace(0.0, bounds - 1.0, features)
    distance = np.abs(place[None] - np.arange(bounds)[:, None])
    return np.maximum(1.0 - distance, 0.0).astype("float32")
