"""`SpeechPreprocessor`: converts recordings to the inputs of a recognizer, and labels to text."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.core.checks import check_sound, check_whole_number
from keras_attention.data.columns import Columns, Computed, Ragged, pad_rows
from keras_attention.data.readers.sounds import read_sound
from keras_attention.data.readers.sphinx import FEATURES, read_features

LEAST = 0.1  # seconds, the minimum length of a batch of waveforms, so that one frame fits


class SoundReader:
    """Base class of preprocessors for recordings. Subclasses define these attributes.

    Attributes:
        sampling_rate: int, the sampling rate in Hz. None for features.
        num_features: int, the number of features in a frame. None for waveforms.
        seconds: float, the longest recording that the model accepts. None for no limit.
    """

    sampling_rate = num_features = seconds = None

    def check_sounds(self):
        """Raise a ValueError unless exactly one of `sampling_rate` and `num_features` is set."""
        class_name = type(self).__name__
        if (self.sampling_rate is None) == (self.num_features is None):
            raise ValueError(
                f"{class_name}: give either sampling_rate= for waveforms or num_features= for "
                "features."
            )
        name = "num_features" if self.sampling_rate is None else "sampling_rate"
        check_whole_number(class_name, name, getattr(self, name))

    @property
    def input_name(self):
        return "features" if self.sampling_rate is None else "waveform"

    @property
    def sound_shape(self):
        """tuple, the shape of one time step: () for raw samples, (F,) for F features per frame."""
        return () if self.num_features is None else (self.num_features,)

    def is_long(self, sound):
        """Return whether `sound`, an array of samples, is longer than the model accepts."""
        return self.seconds is not None and len(sound) > round(self.seconds * self.sampling_rate)

    def __call__(self, sounds):
        arrays = [self._read(sound) for sound in sounds]
        lengths = np.array([len(array) for array in arrays], "int32")
        least = 1 if self.sampling_rate is None else round(LEAST * self.sampling_rate)
        joined = pad_rows(arrays, least=least, shape=self.sound_shape, dtype="float32")
        return {self.input_name: joined, "lengths": lengths}

    def sound_columns(self, recordings):
        """Convert `recordings`, a list of `Recording`, to a dict of columns for `Columns`."""
        sounds = [recording.sound for recording in recordings]

        def process(indices, chosen):
            longest = max(indices, key=lambda i: len(sounds[i]))
            # Pad to the longest recording of the batch, even if another process reads that one.
            return self([*(sounds[i] for i in chosen), sounds[longest]])[self.input_name][:-1]

        lengths = np.array([len(sound) for sound in sounds], "int32")
        shape = (None, None, *self.sound_shape)
        return {self.input_name: Computed(process, shape), "lengths": lengths}

    def _read(self, sound):
        if isinstance(sound, str | pathlib.Path):
            if self.sampling_rate is not None:
                return self._check_length(read_sound(sound, self.sampling_rate)[0], sound)
            if pathlib.Path(sound).suffix != FEATURES:
                raise ValueError(
                    f"{sound}: expected features, arrays (T, F) or files of Sphinx ({FEATURES})."
                )
            sound = read_features(sound)
        array = check_sound("A sound", sound, self.sound_shape, instead="a path, or ")
        if not np.isfinite(array).all():
            raise ValueError("A sound has NaN or infinity: expected finite numbers.")
        return self._check_length(array, "A recording of samples")

    def _check_length(self, array, name):
        """Return `array`, or raise a ValueError if it is too long for the model."""
        if self.is_long(array):
            raise ValueError(
                f"{name} has {len(array) / self.sampling_rate:.2f} seconds, and this model takes "
                f"at most {self.seconds:g}: cut it into pieces where nobody speaks."
            )
        return array


@dataclasses.dataclass(frozen=True)
class SpeechPreprocessor(SoundReader):
    """Converts recordings to inputs of `ka.models.speech_recognizer`, and predicted labels to text.

    Label 0 is the CTC blank. Label k is character or word k - 1.

    Call the object on a list of recordings to get a dict of `"waveform"` or `"features"`, float32,
    and `"lengths"`, int32 (B,). A recording is the path of a WAV or FLAC file, an array of samples
    (n,), floats from -1 to 1, int16 or int32, or an array of features (T, F). Waveforms are padded
    to at least a tenth of a second, and features to at least one frame.

    Args:
        characters: tuple of str, the characters that occur in transcripts. Empty if `words` are
            given.
        sampling_rate: int, the sampling rate in Hz. None for features.
        num_features: int, the number of features in a frame. None for waveforms.
        words: tuple of str, the words that occur in transcripts, for small vocabularies such as
            digits or commands (Soltau et al., 2016, *Neural Speech Recognizer*). A new word
            requires new training.

    ```python
    import numpy as np
    import keras_attention as ka

    preprocessor = ka.data.SpeechPreprocessor.build(["one two"], sampling_rate=8000)
    assert preprocessor.decode(preprocessor.encode("two one")) == "two one"
    inputs = preprocessor([np.zeros(8000), np.zeros(5000)])
    assert inputs["waveform"].shape == (2, 8000) and list(inputs["lengths"]) == [8000, 5000]

    commands = ka.data.SpeechPreprocessor.build(["go on", "stop"], 8000, tokens="words")
    assert commands.words == ("go", "on", "stop") and commands.encode("stop go") == [3, 1]
    ```
    """

    characters: tuple = ()
    sampling_rate: int | None = None
    num_features: int | None = None
    words: tuple = ()

    def __post_init__(self):
        if isinstance(self.words, str) or not all(isinstance(word, str) for word in self.words):
            raise ValueError(f"words={self.words!r:.100}: expected a list of str, one word each.")
        for name in ("characters", "words"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.characters and self.words:
            raise ValueError("SpeechPreprocessor takes characters= or words=, not both.")
        if wrong := [c for c in self.characters if len(c) != 1]:
            raise ValueError(f"characters has {wrong[0]!r}: expected one character each.")
        if wrong := [word for word in self.words if word.split() != [word]]:
            raise ValueError(f"words has {wrong[0]!r}: expected words without spaces.")
        name = "words" if self.words else "characters"
        if len(set(self.tokens)) < len(self.tokens) or not self.tokens:
            raise ValueError(f"{name}={self.tokens!r}: expected some, all different.")
        self.check_sounds()

    @classmethod
    def build(cls, texts, sampling_rate=None, num_features=None, *, tokens="characters"):
        """Make a preprocessor whose vocabulary is collected from a list of transcripts, `texts`.

        The vocabulary is sorted by code points. `tokens` is the unit of the vocabulary,
        `"characters"` or `"words"` (the parts between spaces). `sampling_rate` and `num_features`
        are as in the constructor. Raise a ValueError if the transcripts are empty.
        """
        if tokens not in ("characters", "words"):
            raise ValueError(f"tokens={tokens!r}: expected 'characters' or 'words'.")
        parts = "".join(texts) if tokens == "characters" else " ".join(texts).split()
        if not parts:
            raise ValueError(f"The transcripts have no {tokens}: expected one or more.")
        kinds = {tokens: sorted(set(parts))}
        return cls(sampling_rate=sampling_rate, num_features=num_features, **kinds)

    @property
    def tokens(self):
        """tuple of str, the output vocabulary: `words`, or `characters` if `words` is empty."""
        return self.words or self.characters

    @property
    def vocabulary_size(self):
        """int, the number of labels: the characters or words, and the blank."""
        return len(self.tokens) + 1

    def split(self, text):
        """Split the transcript `text` into characters or words, a list of str."""
        return text.split() if self.words else list(text)

    def join(self, tokens):
        """Join `tokens`, a list of str, into a transcript.

        The tokens are words, joined with spaces, if the preprocessor has `words`. Otherwise they
        are characters.
        """
        return (" " if self.words else "").join(tokens)

    def encode(self, text):
        """Return the ids of the characters or words of the transcript `text`, a list of int.

        Raise a ValueError for an unknown character or word.
        """
        ids = {token: k for k, token in enumerate(self.tokens, start=1)}
        if unknown := [token for token in self.split(text) if token not in ids]:
            raise ValueError(
                f"The text {text[:40]!r} has {unknown[0]!r}: expected "
                f"{self.join(self.tokens)!r:.400}. Replace it, or train with it."
            )
        return [ids[token] for token in self.split(text)]

    def columns(self, recordings):
        """Convert `recordings`, a list of `Recording`, to `Columns` for `ka.data.batches`.

        Labels are the ids of the characters or words of the transcripts, int32 (B, U) for at most U
        in a transcript, and 0 at padding.
        """
        labels = Ragged([self.encode(one.text) for one in recordings], 0, exact=True)
        lengths = [len(one.sound) for one in recordings]
        return Columns(self.sound_columns(recordings), labels, lengths=lengths, are_sounds=True)

    def decode(self, labels):
        """Join the characters or words of a sequence of int labels to a str, without blanks."""
        return self.join(self.tokens[label - 1] for label in map(int, labels) if label)

    def save(self, folder):
        """Write nothing to `folder`.

        The task writes tokens and sampling rate into `manifest.json`.
        """
