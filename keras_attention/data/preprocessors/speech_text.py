"""`SpeechTextPreprocessor`: sounds to the inputs of an encoder-decoder, and its ids to texts."""

import dataclasses

import numpy as np

from keras_attention.data.preprocessors.sequence import TargetTexts
from keras_attention.data.preprocessors.speech import SoundPreprocessor
from keras_attention.data.readers.recordings import (
    batch_by_sound,
    generate_batches,
    pad_labels,
    process_sounds,
    sound_signature,
)
from keras_attention.data.tokenizers.entries import Characters
from keras_attention.data.tokenizers.subwords import Subwords
from keras_attention.files.extras import import_tensorflow


@dataclasses.dataclass(frozen=True)
class SpeechTextPreprocessor(TargetTexts, SoundPreprocessor):
    """Turns sounds into the inputs of `ka.models.speech_to_text`, and texts into ids and back.

    Args:
        target: `Characters` or `Subwords`, of what the model writes.
        sampling_rate: int, samples a second; None for features.
        num_features: int, features of a frame; None for waveforms.

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

    def __post_init__(self):
        self.check_sounds()


def speech_text_batches(
    recordings,
    preprocessor,
    batch_size=16,
    *,
    ctc=False,
    shuffle=False,
    seed=0,
    drop_remainder=False,
):
    """A `tf.data.Dataset` of batches for `ka.models.speech_to_text`, of similar lengths.

    What is written is the translation of a recording, or its transcript where it has none.

    Args:
        recordings: list of `Recording`.
        preprocessor: `SpeechTextPreprocessor`, or `SubwordSpeechPreprocessor`, whose prompt is read
            and not learnt: the labels before its last token are -1.
        batch_size: int; the last batch may be smaller.
        ctc: bool, whether there are labels for a CTC head, which are those of the transcript.
        shuffle: bool, whether recordings meet others in every epoch, in another order.
        seed: int, of that order.
        drop_remainder: bool, whether a smaller last batch is left out: what Keras's own
            distributions want of several processes.

    Returns:
        A dataset of known cardinality. Inputs are what `preprocessor` gives for the sounds, and
        `"target_ids"` int32 (B, U), from BEGIN on; labels are int32 (B, U), the token that
        follows, -1 at padding; or with `ctc` a dict of these as `"logits"`, and as `"ctc_logits"`
        int32 (B, L) of the transcript, 0 at padding.
    """
    if not recordings:
        raise ValueError("recordings is empty: there is nothing to make batches of.")
    tf = import_tensorflow("speech_text_batches")
    targets = preprocessor.target_ids([find_target(recording) for recording in recordings])
    prompt = np.size(preprocessor.start_token_id)  # tokens, one or several
    following = [[*(-1 for _ in ids[1:prompt]), *ids[prompt:]] for ids in targets]
    if ctc:
        heard = preprocessor.target.encode([recording.text for recording in recordings])

    def make(rows, wanted):
        inputs = process_sounds(preprocessor, recordings, rows, wanted)
        padding_id = preprocessor.padding_id or 0
        inputs["target_ids"] = pad_labels([targets[i][:-1] for i in rows], padding_id)[wanted]
        labels = pad_labels([following[i] for i in rows], -1)[wanted]
        if ctc:
            heard_there = pad_labels([heard[i] for i in rows])[wanted]
            labels = {"logits": labels, "ctc_logits": heard_there}
        return inputs, labels

    ids = tf.TensorSpec((None, None), "int32")
    inputs = {**sound_signature(tf, preprocessor), "target_ids": ids}
    labels = {"logits": ids, "ctc_logits": ids} if ctc else ids
    options = {"shuffle": shuffle, "seed": seed, "drop_remainder": drop_remainder}
    order = batch_by_sound(recordings, batch_size, **options)
    return generate_batches(tf, order, make, (inputs, labels))


def find_target(recording):
    """What is to be written of a recording: its translation, or its transcript."""
    return recording.text if recording.translation is None else recording.translation
