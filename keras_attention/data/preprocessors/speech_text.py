"""`SpeechTextPreprocessor`: sounds to the inputs of an encoder-decoder, and its ids to texts."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, Ragged
from keras_attention.data.preprocessors.sequence import (
    TargetTexts,
    check_ends,
    cut_at_end,
    read_ends,
)
from keras_attention.data.preprocessors.speech import SoundPreprocessor
from keras_attention.data.preprocessors.speech_prompt import SpeechPrompt
from keras_attention.data.preprocessors.tokenizer_owner import SUBWORD
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import BEGIN_ID, END_ID, Subwords, check_texts
from keras_attention.files.manifest import read_preprocessing

MOST_RATE, MOST_SECONDS = 1_000_000, 3600


@dataclasses.dataclass(frozen=True)
class SpeechTextPreprocessor(TargetTexts, SoundPreprocessor):
    """Turns sounds into the inputs of `ka.models.speech_to_text`, and texts into ids and back.

    Args:
        target: `Characters`, `Words`, `Subwords` or `PretrainedTokenizer`, of what the model
            writes.
        sampling_rate: int, samples a second; None for features.
        num_features: int, features of a frame; None for waveforms.
        seconds: float, what the model hears at most: longer sounds are refused. None for any.
        end_token_ids: int or ints, any of which ends a text; the first one ends those to train on.
        prompt: `SpeechPrompt`, what texts of a pretrained model begin with; None for BEGIN.
        ctc: bool, whether batches have labels for a CTC head, too.

    Calling it on a list of paths of WAV or FLAC files, or of arrays, samples (n,) or features
    (T, F), gives `"waveform"` or `"features"`, float32, and `"lengths"`, int32 (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    characters = ka.data.Characters.build(["eins zwei"])
    preprocessor = ka.data.SpeechTextPreprocessor(characters, sampling_rate=8000)
    inputs = preprocessor([np.zeros(8000), np.zeros(5000)])
    assert inputs["waveform"].shape == (2, 8000) and list(inputs["lengths"]) == [8000, 5000]
    (ids,) = preprocessor.target_ids(["zwei"])
    assert preprocessor.texts([ids]) == ["zwei"]

    pieces = ["[UNK]", "[CLS]", "[SEP]", "cat", "<en>", "<write>", "<none>"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(
        pieces, lowercase=True, has_segments=False, padding_id=None
    )
    prompt = ka.data.SpeechPrompt(1, 6, languages={"en": 4}, tasks={"transcribe": 5})
    whisper = ka.data.SpeechTextPreprocessor(
        tokenizer, sampling_rate=100, seconds=1, end_token_ids=2, prompt=prompt
    )
    assert whisper.target_ids(["cat"])[0].tolist() == [1, 4, 5, 6, 3, 2]
    assert whisper.texts([[3, 7, 2, 3]]) == ["cat"]
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
        owner = "SpeechTextPreprocessor"
        self.check_sounds()
        if self.seconds is not None and not 0 < self.seconds <= MOST_SECONDS:
            raise ValueError(
                f"{owner}(seconds={self.seconds!r}): expected more than 0, and {MOST_SECONDS} at "
                "most."
            )
        object.__setattr__(self, "end_token_ids", check_ends(owner, self.end_token_ids))

    @property
    def padding_id(self):
        """int, what fills up the shorter texts of a batch; None where every id is a token."""
        return self.target.padding_id if self.prompt is None else None

    @property
    def start_token_id(self):
        """int, or a tuple of ints: what every text begins with."""
        return BEGIN_ID if self.prompt is None else self.prompt.find()

    def target_ids(self, texts):
        """int32 ids (T,) of each of `texts`, from BEGIN or the prompt to END.

        Behind a prompt a space is in front of the text, as Whisper writes it.
        """
        if self.prompt is None:
            return super().target_ids(texts)
        texts = check_texts("SpeechTextPreprocessor", texts)
        rows = [self.target.encode_plain(f" {text.strip()}") for text in texts]
        prompt, end = self.start_token_id, self.end_token_ids[:1]
        return [np.array([*prompt, *row, *end], "int32") for row in rows]

    def texts(self, ids):
        """Return the texts that a model has written: ids (B, T), each up to END, without times."""
        if self.prompt is None:
            return super().texts(ids)
        rows = [cut_at_end(row, self.end_token_ids) for row in ids]
        rows = [row[row <= self.prompt.no_timestamps_id] for row in rows]
        return [text.strip() for text in self.target.decode(rows)]

    def columns(self, recordings):
        """Return `Columns` of a list of `Recording`.

        What is written is the translation of a recording, or its transcript where it has none.
        Inputs have `"target_ids"` int32 (B, U), from BEGIN on. Labels are int32 (B, U), the token
        that follows, -1 at padding and in a prompt. With `ctc` they are a dict of these as
        `"logits"`, and as `"ctc_logits"` int32 (B, L) of the transcript, 0 at padding.
        """
        targets = self.target_ids([find_target(recording) for recording in recordings])
        prompt = np.size(self.start_token_id)  # tokens, one or several
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
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        if self.prompt is None:
            return super().config()
        return {
            **self.describe_tokenizer(),
            "sampling_rate": self.sampling_rate,
            "seconds": self.seconds,
            "end_token_ids": list(self.end_token_ids),
            **dataclasses.asdict(self.prompt),
        }

    @classmethod
    def load(cls, folder, sampling_rate=None, num_features=None):
        """Reads what `save` wrote.

        Args:
            sampling_rate, num_features: those that a task's manifest says, where texts have no
                prompt.
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
    """Return what is to be written of a recording: its translation, or its transcript."""
    return recording.text if recording.translation is None else recording.translation
