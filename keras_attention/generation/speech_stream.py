"""Streaming recognition: labels of the first words while the rest is still spoken."""

import keras
import numpy as np
from keras import ops

from keras_attention import masks
from keras_attention.core import checks, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache
from keras_attention.generation.cache import make_empty_cache

LENGTH = 7  # vectors of the traced call


class SpeechStream:
    """Hears one utterance piece by piece, with the logits of a model that hears it whole.

    A `ka.models.speech_recognizer` with `chunk_size` computes a chunk of vectors as soon as its
    last frame is there: attention finds earlier chunks in a cache, convolutions the frames before.
    So a label comes at most `chunk_size * subsampling` frames after its sound, plus the time of the
    call: 8 · 4 · 10 ms = 320 ms, and of a waveform 15 more, until the last frame of 25 is whole.

    Args:
        model: of `ka.models.speech_recognizer(..., chunk_size=...)`, of features or of waveforms
            (with `spectrogram="kaldi"`, whose frames do not depend on later ones).
        max_length: int, how many vectors the cache has room for: 4096 of 40 ms are 164 seconds.

    After `finish` the same stream hears another utterance. The preprocessor's `decode` makes text
    of labels. Collect the labels of an utterance and decode them all: of whole words, it puts
    spaces only between those that it is given at once.

    Attributes:
        chunk_frames: int, the frames of a chunk.

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
                f"{model.name} has no layers feature_norm and subsampling: expected a model of "
                "ka.models.speech_recognizer(..., chunk_size=...)."
            )
        self._spectrogram = model.get_layer("spectrogram") if "spectrogram" in names else None
        if self._spectrogram is not None and self._spectrogram.settings != "kaldi":
            raise ValueError(
                f"{model.name} makes spectrograms as {self._spectrogram.settings}, which depend on "
                "later samples: build it with spectrogram='kaldi'."
            )
        features = model.get_layer("feature_norm").input
        self._encode = keras.Model(features, model.output)
        factor = model.get_layer("subsampling").factor
        self._spec = self._trace(features.shape[-1], factor)
        self._chunk_size = self._find_chunk_size()
        self.chunk_frames = self._chunk_size * factor
        width = features.shape[-1:] if self._spectrogram is None else ()
        self._nothing = np.zeros((0, *width), "float32")
        self._begin()

    def _trace(self, num_features, factor):
        spec = CacheSpec(LENGTH)
        frames = keras.Input(batch_shape=(None, LENGTH * factor, num_features))
        trace_cache(self._encode, scope.Decoding(spec=spec), frames)
        if spec.refusals:
            raise ValueError(
                f"{self.model.name} cannot hear piece by piece: {spec.refusals[0]} "
                "Build it with chunk_size=."
            )
        return spec

    def _find_chunk_size(self):
        found = set(self._spec.masks.values())
        if len(found) != 1 or not isinstance(mask := found.pop(), masks.Blockwise):
            raise ValueError(
                f"{self.model.name} attends with {', '.join(map(str, self._spec.masks.values()))}, "
                "which does not say where chunks end: build it with chunk_size=."
            )
        return mask.size

    def _begin(self):
        """Forgets what was heard, for the next utterance."""
        self._rest, self._index, self._last = self._nothing, 0, 0
        self._cache = make_empty_cache(self._spec, 1, self.max_length)

    def hear(self, sound):
        """Return the labels that a piece of sound adds, a list of ints.

        Args:
            sound: array, features (T, F), floats, or samples (T,), floats from -1 to 1, or int16 or
                int32, which are scaled to that as `ka.tasks.SpeechRecognizer.predict` does. As many
                as there are: what is less than a chunk waits for the next piece.
        """
        return self._collapse(self.compute_logits(sound))

    def finish(self):
        """The labels of what is left of the utterance; what is heard next begins another one."""
        labels = self._collapse(self.compute_logits(self._nothing, last=True))
        self._begin()
        return labels

    def compute_logits(self, sound, last=False):
        """The logits (T, V) of the chunks that a piece of sound completes, in place of labels.

        Args:
            sound: as of `hear`.
            last: bool, whether the utterance ends with it; `finish` then begins another one.
        """
        sound = checks.check_sound("A piece of sound", sound, self._rest.shape[1:])
        self._rest = np.concatenate([self._rest, sound])
        found = [np.zeros((0, self._encode.output.shape[-1]), "float32")]
        while (frames := self._count_frames()) >= self.chunk_frames or (last and frames):
            frames = min(frames, self.chunk_frames)
            found.append(self._step(self._take(frames)))
        return np.concatenate(found)

    def _count_frames(self):
        if self._spectrogram is None:
            return len(self._rest)
        return self._spectrogram.count_frames(len(self._rest))

    def _take(self, frames):
        """Return the features of so many frames, whose sound has then been heard."""
        if self._spectrogram is None:
            taken, self._rest = self._rest[:frames], self._rest[frames:]
            return taken[None]
        length, stride = self._spectrogram.sequence_length, self._spectrogram.sequence_stride
        samples = self._rest[: (frames - 1) * stride + length]
        self._rest = self._rest[frames * stride :]
        return self._spectrogram(samples[None])

    def _step(self, features):
        vectors = -(-features.shape[1] * self._chunk_size // self.chunk_frames)
        if self._index + vectors > self.max_length:
            raise ValueError(
                f"SpeechStream(max_length={self.max_length}) has heard {self._index} vectors, and "
                f"has no room for {vectors} more: end the utterance with finish(), or give a "
                "larger max_length=."
            )
        with scope.Decoding(self._cache, self._index) as decoding:
            logits = ops.convert_to_numpy(self._encode(features))[0]
        self._cache, self._index = decoding.cache, self._index + len(logits)
        return logits

    def _collapse(self, logits):
        """Return the labels of the best path that are new after those heard so far."""
        labels = []
        for label in map(int, logits.argmax(axis=1)):
            if label not in (0, self._last):
                labels.append(label)
            self._last = label
        return labels
