"""`SpeechTextPreprocessor`: converts recordings to encoder-decoder inputs, and ids to text."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, Ragged
from keras_attention.data.preprocessors.sequence import (
    TargetTexts,
    check_ends,
    cut_at_end,
    read_ends,
)
from keras_attention.data.preprocessors.speech import SoundReader
from keras_attention.data.preprocessors.speech_prompt import SpeechPrompt
from keras_attention.data.preprocessors.tokenizer_owner import SUBWORD, TokenizerOwner
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import BEGIN_ID, END_ID, Subwords, check_texts
from keras_attention.files.manifest import read_preprocessing

MOST_RATE, MOST_SECONDS = 1_000_000, 3600


@dataclasses.dataclass(frozen=True)
class SpeechTextPreprocessor(TargetTexts, SoundReader):
    """Converts recordings to the inputs of `ka.models.speech_to_text`, and text to ids and back.

    Call the object on a list of recordings, paths or arrays, to get a dict of `"waveform"` or
    `"features"`, and `"lengths"`, as with `SpeechPreprocessor`.

    Args:
        target: `Characters`, `Words`, `Subwords` or `PretrainedTokenizer`, the tokenizer of the
            model's output.
        sampling_rate: int, the sampling rate in Hz. None for features.
        num_features: int, the number of features in a frame. None for waveforms.
        seconds: float, the longest recording that is accepted. None for no limit.
        end_token_ids: int or ints. Each of these ids ends a generated text. The first one is
            appended to training text.
        prompt: `SpeechPrompt`, the ids at the start of every output of a pretrained model. With
            None, outputs start with the begin id of the tokenizer.
        ctc: bool, whether batches also contain labels for a CTC head.

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

    target: Characters | Words | Subwords | PretrainedTokenizer
    sampling_rate: int | None = None
    num_features: int | None = None
    seconds: float | None = None
    end_token_ids: tuple = (END_ID,)
    prompt: SpeechPrompt | None = None
    ctc: bool = False
    kind = "speech"

    def __post_init__(self):
        class_name = "SpeechTextPreprocessor"
        self.check_sounds()
        if self.seconds is not None and not 0 < self.seconds <= MOST_SECONDS:
            bounds = f"expected more than 0 and at most {MOST_SECONDS}"
            raise ValueError(f"{class_name}(seconds={self.seconds!r}): {bounds}.")
        object.__setattr__(self, "end_token_ids", check_ends(class_name, self.end_token_ids))

    @property
    def padding_id(self):
        """int, the id that pads shorter rows. None with a prompt, where every id is a token."""
        return self.target.padding_id if self.prompt is None else None

    @property
    def start_token_id(self):
        """int, the id at the start of every output, or a tuple of ints if there is a prompt."""
        return BEGIN_ID if self.prompt is None else self.prompt.find()

    def target_ids(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, for training a decoder.

        The ids start with the begin id or the prompt, and end with the end id. After a prompt, a
        space is put before the string, as in Whisper.
        """
        if self.prompt is None:
            return super().target_ids(texts)
        texts = check_texts("SpeechTextPreprocessor", texts)
        rows = [self.target.encode_plain(f" {text.strip()}") for text in texts]
        prompt, end = self.start_token_id, self.end_token_ids[:1]
        return [np.array([*prompt, *row, *end], "int32") for row in rows]

    def texts(self, ids):
        """Convert generated ids (B, T) to a list of str.

        Each text ends before the first end id. Timestamp tokens are removed.
        """
        if self.prompt is None:
            return super().texts(ids)
        rows = [cut_at_end(row, self.end_token_ids) for row in ids]
        rows = [row[row <= self.prompt.no_timestamps_id] for row in rows]
        return [text.strip() for text in self.target.decode(rows)]

    def columns(self, recordings):
        """Convert `recordings`, a list of `Recording`, to `Columns` for `ka.data.batches`.

        The target is the translation of a recording, or its transcript if it has no translation.
        Inputs include `"target_ids"`, int32 (B, U) for at most U tokens in a target, which start
        with the begin id or the prompt. Labels are the next ids, int32 (B, U), and -1 at padding
        and inside a prompt. If `ctc` is True, labels are a dict with two such arrays: `"logits"`
        are these ids, and `"ctc_logits"` are the ids of the transcript, int32 (B, length), 0 at
        padding.
        """
        targets = self.target_ids([find_target(recording) for recording in recordings])
        prompt = np.size(self.start_token_id)  # number of tokens in the prompt
        following = [[*(-1 for _ in ids[1:prompt]), *ids[prompt:]] for ids in targets]
        target_ids = Ragged([ids[:-1] for ids in targets], self.padding_id or 0, exact=True)
        inputs = {**self.sound_columns(recordings), "target_ids": target_ids}
        labels = Ragged(following, -1, exact=True)
        if self.ctc:
            heard = self.target.encode([recording.text for recording in recordings])
            labels = {"logits": labels, "ctc_logits": Ragged(heard, 0, exact=True)}
        lengths = [len(recording.sound) for recording in recordings]
        return Columns(inputs, labels, lengths=lengths, are_sounds=True)

    def config(self):
        if self.prompt is None:
            return super().config()
        return {
            **TokenizerOwner.config(self),
            "sampling_rate": self.sampling_rate,
            "seconds": self.seconds,
            "end_token_ids": list(self.end_token_ids),
            **self.prompt.config(),
        }

    @classmethod
    def load(cls, folder, sampling_rate=None, num_features=None):
        """Load a preprocessor from the files that `save` wrote into `folder`.

        `sampling_rate` and `num_features` come from the task's manifest. They are used only if the
        preprocessor has no prompt.
        """
        config = read_preprocessing(folder, "generator", SUBWORD + cls.kind)
        if config.values["kind"] != SUBWORD + cls.kind:
            sounds = {"sampling_rate": sampling_rate, "num_features": num_features}
            return super().load(folder, **sounds)
        return cls(
            PretrainedTokenizer.load(folder, config.object("tokenizer")),
            config.whole("sampling_rate", most=MOST_RATE),
            seconds=config.number("seconds", above=0),
            end_token_ids=read_ends(config),
            prompt=SpeechPrompt.read(config),
        )


def find_target(recording):
    """Return the translation of a recording, or its transcript if it has no translation."""
    return recording.text if recording.translation is None else recording.translation
