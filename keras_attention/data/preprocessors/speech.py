"""`SpeechPreprocessor`: sounds to the inputs of a recognizer, and labels to text."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.core.checks import check_sound, check_whole_number
from keras_attention.data.columns import Columns, Computed, Ragged, pad_rows
from keras_attention.data.readers.sounds import read_sound
from keras_attention.data.readers.sphinx import FEATURES, read_features

LEAST = 0.1  # seconds that a batch of waveforms is filled up to: every frame of theirs fits


class SoundPreprocessor:
    """Turns sounds into the inputs of models of speech; subclasses have the attributes.

    Attributes:
        sampling_rate: int, samples a second; None for features.
        num_features: int, features of a frame; None for waveforms.
        seconds: float, the longest sound that the model takes; None for any.
    """

    sampling_rate = num_features = seconds = None

    def check_sounds(self):
        """Refuses a preprocessor that is not either of waveforms or of features."""
        owner = type(self).__name__
        if (self.sampling_rate is None) == (self.num_features is None):
            raise ValueError(
                f"{owner} takes sampling_rate= for waveforms, or num_features= for features: give "
                "one of them."
            )
        name = "num_features" if self.sampling_rate is None else "sampling_rate"
        check_whole_number(owner, name, getattr(self, name))

    @property
    def input_name(self):
        return "features" if self.sampling_rate is None else "waveform"

    @property
    def sound_shape(self):
        """Return the shape of a frame: (F,), or () of a sample."""
        return () if self.num_features is None else (self.num_features,)

    def is_long(self, sound):
        """Return whether an array has more samples than the model takes."""
        return self.seconds is not None and len(sound) > round(self.seconds * self.sampling_rate)

    def __call__(self, sounds):
        arrays = [self._read(sound) for sound in sounds]
        lengths = np.array([len(array) for array in arrays], "int32")
        least = 1 if self.sampling_rate is None else round(LEAST * self.sampling_rate)
        joined = pad_rows(arrays, least=least, shape=self.sound_shape, dtype="float32")
        return {self.input_name: joined, "lengths": lengths}

    def sound_columns(self, recordings):
        """Return the inputs of a model as columns, of a list of `Recording`."""
        sounds = [recording.sound for recording in recordings]

        def process(indices, chosen):
            longest = max(indices, key=lambda i: len(sounds[i]))
            # The longest sound of the batch says how long all are, also where it is not wanted.
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
                    f"{sound}: this model takes features, arrays (T, F) or files of Sphinx "
                    f"({FEATURES}), not sound."
                )
            sound = read_features(sound)
        array = check_sound("A sound", sound, self.sound_shape, instead="a path, or ")
        if not np.isfinite(array).all():
            raise ValueError("A sound holds NaN or infinity: expected finite numbers.")
        return self._check_length(array, "A recording of samples")

    def _check_length(self, array, name):
        """Return `array`, where the model takes so many samples; an error says what has more."""
        if self.is_long(array):
            raise ValueError(
                f"{name} has {len(array) / self.sampling_rate:.2f} seconds, and this model hears "
                f"{self.seconds:g} at a time: cut it into pieces where nobody speaks, and pass "
                "these."
            )
        return array


@dataclasses.dataclass(frozen=True)
class SpeechPreprocessor(SoundPreprocessor):
    """Turns sounds into the inputs of `ka.models.speech_recognizer`, and its labels into text.

    Label 0 is the blank, label k the character k - 1, or the word k - 1.

    Args:
        characters: tuple of str, one character each, that transcripts consist of; empty where they
            consist of `words`.
        sampling_rate: int, samples a second; None for features.
        num_features: int, features of a frame; None for waveforms.
        words: tuple of str, without spaces, that transcripts consist of, for models that say
            nothing else: digits, commands (Soltau et al., 2016, *Neural Speech Recognizer*). What
            they write are always words, and a new word needs training.

    Calling it on a list of paths of WAV or FLAC files, or of arrays, samples (n,) from -1 to 1 (or
    int16 or int32, as files have them) or features (T, F), gives `"waveform"` or `"features"`,
    float32, and `"lengths"`, int32 (B,). Waveforms are filled up to a tenth of a second at least,
    features to a frame.

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
        """With what `texts`, a list of str, consist of, in the order of their code points.

        Args:
            tokens: `"characters"`, or `"words"`, which are between spaces.
        """
        if tokens not in ("characters", "words"):
            raise ValueError(f"tokens={tokens!r}: expected 'characters' or 'words'.")
        parts = "".join(texts) if tokens == "characters" else " ".join(texts).split()
        sounds = {"sampling_rate": sampling_rate, "num_features": num_features}
        if not parts:
            raise ValueError(f"The texts hold no {tokens}: expected some to learn.")
        return cls(**{tokens: sorted(set(parts))}, **sounds)

    @property
    def tokens(self):
        """Return the characters or the words, a tuple of str."""
        return self.words or self.characters

    @property
    def vocabulary_size(self):
        """Return the characters or words, and the blank."""
        return len(self.tokens) + 1

    def split(self, text):
        """Return the characters or the words of a transcript, a list of str."""
        return text.split() if self.words else list(text)

    def join(self, tokens):
        """Return the text of a list of characters or of words."""
        return (" " if self.words else "").join(tokens)

    def encode(self, text):
        """Return the labels of a transcript, a list of int.

        An unknown character or word is an error.
        """
        ids = {token: k for k, token in enumerate(self.tokens, start=1)}
        if unknown := [token for token in self.split(text) if token not in ids]:
            raise ValueError(
                f"The text {text[:40]!r} has {unknown[0]!r}, and the model knows "
                f"{self.join(self.tokens)!r:.400}: replace it, or train with it."
            )
        return [ids[token] for token in self.split(text)]

    def columns(self, recordings):
        """Return `Columns` of a list of `Recording`. Labels are int32 (B, U), 0 at padding."""
        labels = Ragged([self.encode(one.text) for one in recordings], 0, exact=True)
        lengths = [len(one.sound) for one in recordings]
        return Columns(self.sound_columns(recordings), labels, lengths=lengths, are_sounds=True)

    def decode(self, labels):
        """Return the text of labels, ints; blanks are nothing."""
        return self.join(self.tokens[label - 1] for label in map(int, labels) if label)

    def save(self, folder):
        """Writes nothing: tokens and the rate are in the task's entries of the manifest."""
