"""`SpeechStream`: recognizes speech while the speaker is still talking."""

import keras
import numpy as np
from keras import ops

from keras_attention import masks
from keras_attention.core import checks, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache
from keras_attention.generation.cache import make_empty_cache

LENGTH = 7  # number of vectors in the call that traces the cache


class SpeechStream:
    """Recognizes speech piece by piece, with the same logits as for the whole utterance.

    A model of `ka.models.speech_recognizer` with `chunk_size` processes each chunk as soon as its
    last frame arrives, with a cache for earlier chunks. The latency of a label is at most
    `chunk_size * subsampling` frames, for example 8 · 4 · 10 ms = 320 ms, plus computing time. With
    waveforms it is 15 ms longer, because a frame lasts 25 ms.

    Args:
        model: from `ka.models.speech_recognizer(..., chunk_size=...)`, with features or waveforms.
            Waveforms need `spectrogram="kaldi"`, whose frames do not depend on later samples.
        max_length: int, the maximum number of vectors in an utterance. 4096 vectors of 40 ms are
            164 seconds.

    After `finish` the stream can be used for another utterance. Collect all labels of an utterance
    before you call the preprocessor's `decode`, which adds spaces only between words of one call.

    Attributes:
        chunk_frames: int, the number of frames in a chunk.
        encoder: functional `keras.Model` from features (B, T, F) to logits.
        spectrogram: `ka.blocks.LogMelSpectrogram` of a model of waveforms, or None.
        cache_spec: `CacheSpec`, which lists the tensors that the layers store.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    sound = ka.models.SpeechEmbedding(num_mel_bins=40)
    model = ka.models.speech_recognizer(9, chunk_size=2, embedding=sound, **size)
    features = np.random.normal(size=(50, 40)).astype("float32")
    whole = model({"features": features[None], "lengths": np.array([50])})

    stream = ka.generation.SpeechStream(model)
    labels = []
    for piece in np.array_split(features, 6):
        labels += stream.hear(piece)
    labels += stream.finish()
    expected = np.array(ka.blocks.GreedyCTCDecoder()(whole))[0]
    assert labels == list(expected[expected > 0])
    ```
    """

    def __init__(self, model, max_length=4096):
        self.model = model
        self.max_length = checks.check_whole_number("SpeechStream", "max_length", max_length)
        names = {layer.name for layer in model.layers}
        if not {"feature_norm", "subsampling"} <= names:
            raise ValueError(
                f"{model.name} has no layers feature_norm and subsampling. Pass a model of "
                "ka.models.speech_recognizer(..., chunk_size=...)."
            )
        self.spectrogram = model.get_layer("spectrogram") if "spectrogram" in names else None
        if self.spectrogram is not None and self.spectrogram.settings != "kaldi":
            raise ValueError(
                f"{model.name} has spectrogram={self.spectrogram.settings!r}, whose frames depend "
                "on later samples. Build it with spectrogram='kaldi'."
            )
        features = model.get_layer("feature_norm").input
        self.encoder = keras.Model(features, model.output)
        factor = model.get_layer("subsampling").factor
        self.cache_spec = self._trace(features.shape[-1], factor)
        self._chunk_size = self._find_chunk_size()
        self.chunk_frames = self._chunk_size * factor
        width = features.shape[-1:] if self.spectrogram is None else ()
        self._nothing = np.zeros((0, *width), "float32")
        self._begin()

    def _trace(self, num_features, factor):
        spec = CacheSpec(LENGTH)
        frames = keras.Input(batch_shape=(None, LENGTH * factor, num_features))
        trace_cache(self.encoder, scope.Decoding(spec=spec), frames)
        if spec.refusals:
            raise ValueError(
                f"{self.model.name} cannot read a recording piece by piece: {spec.refusals[0]} "
                "Build it with chunk_size=."
            )
        return spec

    def _find_chunk_size(self):
        all_masks = list(self.cache_spec.masks.values())
        parts = set(all_masks)
        if len(parts) != 1 or not isinstance(mask := parts.pop(), masks.Blockwise):
            raise ValueError(
                f"{self.model.name} attends with {', '.join(map(str, all_masks))}, "
                "which has no chunks. Build it with chunk_size=."
            )
        return mask.size

    def _begin(self):
        """Reset the stream for the next utterance."""
        self._rest, self._index, self._last = self._nothing, 0, 0
        self._cache = make_empty_cache(self.cache_spec, 1, self.max_length)

    def hear(self, sound):
        """Read the next piece of sound, and return new labels, a list of ints.

        Args:
            sound: features (T, F), floats, F for each of T frames, or samples (T,). Samples are
                floats from -1 to 1, or int16 or int32, which are divided by their largest value. A
                piece may have any length. An incomplete chunk is kept until the next piece.
        """
        return self._collapse(self.compute_logits(sound))

    def finish(self):
        """Return the last labels of the utterance, and reset the stream."""
        labels = self._collapse(self.compute_logits(self._nothing, last=True))
        self._begin()
        return labels

    def compute_logits(self, sound, last=False):
        """Return the logits (T, V) of the chunks that a piece of sound completes.

        T is the number of vectors in these chunks, and V the number of labels with the blank.

        Args:
            sound: features (T, F) or samples (T,), explained in `hear`.
            last: bool, whether this is the last piece of the utterance, so that an incomplete chunk
                is processed too. Call `finish` before the next utterance.
        """
        sound = checks.check_sound("A piece of sound", sound, self._rest.shape[1:])
        self._rest = np.concatenate([self._rest, sound])
        logits = [np.zeros((0, self.encoder.output.shape[-1]), "float32")]
        while (frames := self._count_frames()) >= self.chunk_frames or (last and frames):
            frames = min(frames, self.chunk_frames)
            logits.append(self._step(self._take(frames)))
        return np.concatenate(logits)

    def _count_frames(self):
        if self.spectrogram is None:
            return len(self._rest)
        return self.spectrogram.count_frames(len(self._rest))

    def _take(self, frames):
        """Remove the features of the first `frames` frames from the buffer, and return them."""
        if self.spectrogram is None:
            taken, self._rest = self._rest[:frames], self._rest[frames:]
            return taken[None]
        length, stride = self.spectrogram.sequence_length, self.spectrogram.sequence_stride
        samples = self._rest[: (frames - 1) * stride + length]
        self._rest = self._rest[frames * stride :]
        return self.spectrogram(samples[None])

    def _step(self, features):
        vectors = -(-features.shape[1] * self._chunk_size // self.chunk_frames)
        if self._index + vectors > self.max_length:
            raise ValueError(
                f"SpeechStream(max_length={self.max_length}) has read {self._index} vectors, and "
                f"has no room for {vectors} more. End the utterance with finish(), or use a "
                "larger max_length=."
            )
        with scope.Decoding(self._cache, self._index) as decoding:
            logits = ops.convert_to_numpy(self.encoder(features))[0]
        self._cache, self._index = decoding.cache, self._index + len(logits)
        return logits

    def _collapse(self, logits):
        """Return the labels of the next logits (T, V), a list without blanks and repeats."""
        labels = []
        for label in map(int, logits.argmax(axis=1)):
            if label not in (0, self._last):
                labels.append(label)
            self._last = label
        return labels
