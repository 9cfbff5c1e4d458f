"""`SpecAugment`: hides frames and features in training, and shifts the frequencies of voices."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments

_KNEE = 0.8  # the fraction of the features below the knee of `SpecAugment._warp`


@keras.saving.register_keras_serializable(package="keras_attention")
class SpecAugment(OwnArguments, keras.layers.Layer):
    """Hides spans of frames and bands of features in training (Park et al., 2019, section 2).

    Each example gets its own random spans and bands. The time warping of the paper is left out. The
    defaults are the policy *LibriSpeech double* (table 1).

    Args:
        num_time_masks: int, number of spans of frames (m_T in the paper).
        time_mask_size: int, the maximum length of a span in frames (T).
        num_frequency_masks: int, number of bands of features (m_F).
        frequency_mask_size: int, the maximum width of a band in features (F).
        time_mask_ratio: float from 0 to 1, the maximum length of a span as a fraction of the
            utterance (p). Gulati et al. (2020) use ten spans of 0.05.
        frequency_warp: float from 0 to 0.99, the maximum fraction by which frequencies are raised
            or lowered, as by a shorter or longer vocal tract. The highest frequency does not move
            (Jaitly and Hinton, 2013, *Vocal tract length perturbation*, use 0.1).
        seed: int, the seed of the random numbers. None draws a new seed.

    Call arguments:
        inputs: (B, T, F), F features of T frames, with mean 0. Hidden features become 0.
        mask: bool (B, T), True = a frame. Padding comes last. Keras fills it from the implicit
            mask.
        training: bool. If it is not True, the inputs are returned unchanged.

    Returns (B, T, F), with the mask of the inputs.

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
                f"{input_shape[-1]} features a frame. Choose a size of at most {input_shape[-1]}."
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
            spans = self._sample_spans(rows, self.num_time_masks, frames, lengths, most)
            x = ops.where(ops.expand_dims(spans, axis=2), ops.cast(0, x.dtype), x)
        if self.num_frequency_masks:
            size = self.frequency_mask_size + 0.0
            bands = self._sample_spans(
                rows, self.num_frequency_masks, features, features + 0.0, size
            )
            x = ops.where(ops.expand_dims(bands, axis=1), ops.cast(0, x.dtype), x)
        return x

    def _warp(self, inputs):
        """Stretch features (B, T, F) along the frequency axis by a random factor a for each row.

        Up to a frequency called the knee, the new feature f is the old feature a · f, linearly
        interpolated. Above the knee, the map is linear such that the last feature does not move.
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

    def _sample_spans(self, rows, count, size, length, most):
        """Return random spans of positions in each row, as bool (rows, size), True inside a span.

        Args:
            rows: int, number of rows.
            count: int, number of spans in each row. They may overlap.
            size: int, number of positions in each row.
            length: float or (rows, 1). A span ends before this position of its row.
            most: float or (rows, 1), the maximum number of positions in a span.
        """
        drawn = keras.random.uniform((2, rows, count), dtype="float32", seed=self._generator)
        span = ops.floor(drawn[0] * (ops.floor(most) + 1.0))
        start = ops.floor(drawn[1] * (length - span + 1.0))
        index = ops.reshape(ops.arange(size, dtype="float32"), (1, 1, -1))
        start, span = ops.expand_dims(start, axis=2), ops.expand_dims(span, axis=2)
        return ops.any(ops.logical_and(index >= start, index < start + span), axis=1)

    def compute_output_shape(self, input_shape):
        return input_shape
