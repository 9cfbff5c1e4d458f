"""SpecAugment: what a model must do without in training, and voices that it never heard."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments

_KNEE = 0.8  # the share of the features that a warp multiplies; above, the last one stays


@keras.saving.register_keras_serializable(package="keras_attention")
class SpecAugment(OwnArguments, keras.layers.Layer):
    """Hides spans of frames and bands of features in training (Park et al., 2019, section 2).

    A span's length is drawn from 0 to `time_mask_size`, and to `time_mask_ratio` of an utterance at
    most, a band's from 0 to `frequency_mask_size`; then where they lie. Every example has its own.
    The paper's time warping, which its section 5 finds to matter least, is left out.

    Args:
        num_time_masks, time_mask_size: int, the paper's m_T and T. The defaults are of its policy
            LibriSpeech double (table 1).
        num_frequency_masks, frequency_mask_size: int, m_F and F.
        time_mask_ratio: float p, from 0 to 1. Gulati et al. (2020) take ten spans of 0.05.
        frequency_warp: float, from 0 to below 1: frequencies are taken higher or lower by up to
            this share, as if the speaker's vocal tract were shorter or longer; the highest stay
            (Jaitly and Hinton, 2013, *Vocal tract length perturbation improves speech
            recognition*, take 0.1).
        seed: int.

    Call arguments:
        inputs: (B, T, F), of mean 0: what is hidden becomes 0.
        mask: bool (B, T), True = a frame, those of a row first; from the implicit mask.
        training: bool; without it nothing happens.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.SpecAugment(time_mask_size=10, frequency_mask_size=8, seed=1)
    features = np.ones((2, 50, 40))
    assert np.all(layer(features) == 1)
    assert 0.2 < np.mean(layer(features, training=True)) < 1
    ```
    """

    own_arguments = (
        *("num_time_masks", "time_mask_size", "num_frequency_masks", "frequency_mask_size"),
        *("time_mask_ratio", "frequency_warp", "seed"),
    )

    def __init__(
        self,
        num_time_masks=2,
        time_mask_size=100,
        num_frequency_masks=2,
        frequency_mask_size=27,
        time_mask_ratio=1.0,
        frequency_warp=0.0,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_time_masks, self.time_mask_size = num_time_masks, time_mask_size
        self.num_frequency_masks = num_frequency_masks
        self.frequency_mask_size, self.time_mask_ratio = frequency_mask_size, time_mask_ratio
        names = ("num_time_masks", "time_mask_size", "num_frequency_masks", "frequency_mask_size")
        checks.check_whole_numbers(self, *names, least=0)
        self.frequency_warp = frequency_warp
        checks.check_number(self, "time_mask_ratio", least=0, most=1)
        checks.check_number(self, "frequency_warp", least=0, most=0.99)
        self.seed = seed
        self._generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        if self.num_frequency_masks and input_shape[-1] < self.frequency_mask_size:
            raise ValueError(
                f"SpecAugment(frequency_mask_size={self.frequency_mask_size}) was called on "
                f"{input_shape[-1]} features a frame: choose at most as many."
            )

    def call(self, inputs, mask=None, training=None):
        if not training:
            return inputs
        rows, frames, features = *ops.shape(inputs)[:2], inputs.shape[-1]
        if mask is None:
            lengths = ops.full((rows, 1), ops.cast(frames, "float32"), dtype="float32")
        else:
            lengths = ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True)
        most = ops.minimum(self.time_mask_size + 0.0, self.time_mask_ratio * lengths)
        x = self._warp(inputs) if self.frequency_warp else inputs
        if self.num_time_masks:
            spans = self._draw(rows, self.num_time_masks, frames, lengths, most)
            x = ops.where(ops.expand_dims(spans, axis=2), ops.cast(0, x.dtype), x)
        if self.num_frequency_masks:
            size = self.frequency_mask_size + 0.0
            bands = self._draw(rows, self.num_frequency_masks, features, features + 0.0, size)
            x = ops.where(ops.expand_dims(bands, axis=1), ops.cast(0, x.dtype), x)
        return x

    def _warp(self, inputs):
        """Each example with features of neighbouring frequencies, by linear interpolation.

        Feature f is taken from a · f, up to a knee at four fifths of all, and from there on a line
        that ends where features do.
        """
        rows, features = ops.shape(inputs)[0], inputs.shape[-1]
        share = keras.random.uniform((rows, 1), -1.0, 1.0, "float32", seed=self._generator)
        factor = 1.0 + self.frequency_warp * share
        last = features - 1.0
        place = ops.reshape(ops.arange(features, dtype="float32"), (1, -1))
        knee = _KNEE * last / ops.maximum(factor, 1.0)
        above = last - (last - factor * knee) * (last - place) / (last - knee)
        source = ops.where(place <= knee, factor * place, above)  # (B, F)
        distance = ops.abs(ops.expand_dims(source, axis=1) - ops.expand_dims(place, axis=2))
        weights = ops.cast(ops.maximum(1.0 - distance, 0.0), inputs.dtype)  # (B, from, to)
        return ops.matmul(inputs, weights)

    def _draw(self, rows, count, places, length, most):
        """Which of `places` lie in one of `count` spans: bool (B, places).

        Args:
            length: float or (B, 1), the places that spans may lie in.
            most: float or (B, 1), the longest span.
        """
        drawn = keras.random.uniform((2, rows, count), dtype="float32", seed=self._generator)
        size = ops.floor(drawn[0] * (ops.floor(most) + 1.0))
        start = ops.floor(drawn[1] * (length - size + 1.0))
        place = ops.reshape(ops.arange(places, dtype="float32"), (1, 1, -1))
        start, size = ops.expand_dims(start, axis=2), ops.expand_dims(size, axis=2)
        return ops.any(ops.logical_and(place >= start, place < start + size), axis=1)

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
