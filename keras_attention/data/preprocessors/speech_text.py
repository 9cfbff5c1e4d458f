"""`SpeechTextPreprocessor`: sounds to the inputs of an encoder-decoder, and its ids to texts."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, Ragged
from keras_attention.data.preprocessors.sequence import TargetTexts
from keras_attention.data.preprocessors.speech import SoundPreprocessor
from keras_attention.data.tokenizers.entries import Characters
from keras_attention.data.tokenizers.subwords import Subwords


@dataclasses.dataclass(frozen=True)
class SpeechTextPreprocessor(TargetTexts, SoundPreprocessor):
    """Turns sounds into the inputs of `ka.models.speech_to_text`, and texts into ids and back.

    Args:
        target: `Characters` or `Subwords`, of what the model writes.
        sampling_rate: int, samples a second; None for features.
        num_features: int, features of a frame; None for waveforms.
        ctc: bool, whether batches have labels for a CTC head, too.

    Calling it on a list of paths of WAV or FLAC files, or of arrays, samples (n,) or features
    (T, F), gives `"waveform"` or `"features"`, float32, and `"lengths"`, int32 (B,).

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    characters = ka.data.Characters.build(["eins zwei"])
    preprocessor = ka.data.SpeechTextPreprocessor(characters, sampling_rate=8000)
    inputs = preprocessor([np.zeros(8000), np.zeros(5000)])
    assert inputs["waveform"].shape == (2, 8000) and list(inputs["lengths"]) == [8000, 5000]
    (ids,) = preprocessor.target_ids(["zwei"])
    assert preprocessor.texts([ids]) == ["zwei"]
    ```
    """

    target: Characters | Subwords
    sampling_rate: int | None = None
    num_features: int | None = None
    ctc: bool = False

    def __post_init__(self):
        self.check_sounds()

    def columns(self, recordings):
        """`Columns` of a list of `Recording`.

        What is written is the translation of a recording, or its transcript where it has none.
        Inputs have `"target_ids"` int32 (B, U), from BEGIN on. Labels are int32 (B, U), the token
        that follows, -1 at padding and in a prompt. With `ctc` they are a dict of these as
        `"logits"`, and as `"ctc_logits"` int32 (B, L) of the transcript, 0 at padding.
        """
        targets = self.target_ids([find_target(recording) for recording in recordings])
        prompt = np.size(self.start_token_id)  # tokens, one or several
        following = [[*(-1 for _ in ids[1:prompt]), *ids[prompt:]] for ids in targets]
        given = Ragged([ids[:-1] for ids in targets], self.padding_id or 0, exact=True)
        inputs = {**self.sound_columns(recordings), "target_ids": given}
        labels = Ragged(following, -1, exact=True)
        if self.ctc:
            heard = self.target.encode([recording.text for recording in recordings])
            labels = {"logits": labels, "ctc_logits": Ragged(heard, 0, exact=True)}
        lengths = [len(recording.sound) for recording in recordings]
        return Columns(inputs, labels, lengths=lengths, are_sounds=True)


def find_target(recording):
    """What is to be written of a recording: its translation, or its transcript."""
    return recording.text if recording.translation is None else recording.translation
