"""`SubwordSpeechPreprocessor`: sounds to the inputs of Whisper, its prompts, its ids to texts."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.preprocessors.speech import SoundPreprocessor
from keras_attention.data.preprocessors.speech_text import SpeechTextPreprocessor
from keras_attention.data.preprocessors.subword_sequence import cut_at_end
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer, TokenizerOwner
from keras_attention.data.tokenizers.subwords import check_texts
from keras_attention.files.fields import MOST_ID
from keras_attention.files.manifest import read_preprocessing

MOST_RATE, MOST_SECONDS = 1_000_000, 3600
_NAMED = """
    english en chinese zh german de spanish es russian ru korean ko french fr japanese ja
    portuguese pt turkish tr polish pl catalan ca dutch nl arabic ar swedish sv italian it
    indonesian id hindi hi finnish fi vietnamese vi hebrew he ukrainian uk greek el malay ms czech
    cs romanian ro danish da hungarian hu tamil ta norwegian no thai th urdu ur croatian hr
    bulgarian bg lithuanian lt latin la maori mi malayalam ml welsh cy slovak sk telugu te persian
    fa latvian lv bengali bn serbian sr azerbaijani az slovenian sl kannada kn estonian et
    macedonian mk breton br basque eu icelandic is armenian hy nepali ne mongolian mn bosnian bs
    kazakh kk albanian sq swahili sw galician gl marathi mr punjabi pa sinhala si khmer km shona
    sn yoruba yo somali so afrikaans af occitan oc georgian ka belarusian be tajik tg sindhi sd
    gujarati gu amharic am yiddish yi lao lo uzbek uz faroese fo haitian_creole ht pashto ps
    turkmen tk nynorsk nn maltese mt sanskrit sa luxembourgish lb myanmar my tibetan bo tagalog tl
    malagasy mg assamese as tatar tt hawaiian haw lingala ln hausa ha bashkir ba javanese jw
    sundanese su cantonese yue
""".split()
NAMES = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True))  # of languages, as Whisper has them


@dataclasses.dataclass(frozen=True)
class SubwordSpeechPreprocessor(TokenizerOwner, SoundPreprocessor):
    """Turns sounds into the inputs of a pretrained model of speech, and texts into ids and back.

    What Whisper writes begins with a prompt of special tokens: which language is spoken, and
    whether to write it or to translate it into English (Radford et al., 2022, section 2.3).

    Args:
        tokenizer: `PretrainedTokenizer`.
        sampling_rate: int, samples a second.
        seconds: float, what the model hears at most: longer sounds are refused.
        end_token_ids: ints, any of which ends a text; the first one ends those to train on.
        begin_token_id: int, the first token of the prompt.
        no_timestamps_id: int, the last token of the prompt. Ids above it are times, which texts are
            without.
        languages: dict, code -> id, such as `{"de": 50261}`; empty for a model of one language.
        tasks: dict, name -> id, such as `{"transcribe": 50359, "translate": 50358}`; likewise.
        language: str, one of `languages` by its code or its English name; None for English, or the
            first, or in a model of one language.
        task: str, one of `tasks`; None for the first.

    Calling it on a list of paths of WAV or FLAC files, or of arrays, samples (n,), gives
    `"waveform"`, float32, and `"lengths"`, int32 (B,).

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pieces = ["[UNK]", "[CLS]", "[SEP]", "cat", "<de>", "<en>", "<write>", "<translate>", "<none>"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(
        pieces, lowercase=True, has_segments=False, padding_id=None
    )
    whisper = ka.data.SubwordSpeechPreprocessor(
        tokenizer,
        sampling_rate=100,
        seconds=1,
        end_token_ids=2,
        begin_token_id=1,
        no_timestamps_id=8,
        languages={"de": 4, "en": 5},
        tasks={"transcribe": 6, "translate": 7},
    )
    assert whisper.start_token_id == (1, 5, 6, 8)
    assert whisper.find_prompt("german", "translate") == (1, 4, 7, 8)
    assert whisper.target_ids(["cat"])[0].tolist() == [1, 5, 6, 8, 3, 2]
    assert whisper.texts([[3, 9, 2, 3]]) == ["cat"]
    assert whisper([np.zeros(80)])["waveform"].shape == (1, 80)
    ```
    """

    tokenizer: PretrainedTokenizer
    sampling_rate: int = dataclasses.field()  # not None, as in the base
    seconds: float = dataclasses.field()
    end_token_ids: tuple
    begin_token_id: int
    no_timestamps_id: int
    languages: dict = dataclasses.field(default_factory=dict)
    tasks: dict = dataclasses.field(default_factory=dict)
    language: str | None = None
    task: str | None = None
    ctc: bool = False
    kind = "subword_speech"

    def __post_init__(self):
        owner = type(self).__name__
        self.check_sounds()
        if not 0 < self.seconds <= MOST_SECONDS:
            raise ValueError(
                f"{owner}(seconds={self.seconds!r}): expected more than 0, and {MOST_SECONDS} at "
                "most."
            )
        ends = self.end_token_ids
        ends = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
        if not ends:
            raise ValueError(f"{owner}: end_token_ids is empty, and a text must end.")
        object.__setattr__(self, "end_token_ids", ends)
        ids = {
            "end_token_ids": ends,
            "begin_token_id": (self.begin_token_id,),
            "no_timestamps_id": (self.no_timestamps_id,),
            "languages": self.languages.values(),
            "tasks": self.tasks.values(),
        }
        for name, values in ids.items():
            for i in values:
                check_whole_number(owner, name, i, least=0, most=MOST_ID)
        default = "en" if "en" in self.languages else next(iter(self.languages), None)
        chosen = self._find_language(self.language or default)
        object.__setattr__(self, "language", chosen)
        object.__setattr__(self, "task", self.task or next(iter(self.tasks), None))
        self.find_prompt()

    @property
    def target(self):
        """The tokenizer of what the model writes."""
        return self.tokenizer

    @property
    def padding_id(self):
        """None: every id is a token."""
        return None

    @property
    def start_token_id(self):
        """tuple of ints, the prompt that every text begins with."""
        return self.find_prompt()

    @property
    def end_token_id(self):
        """int, or a tuple of ints: what ends a text."""
        return self.end_token_ids[0] if len(self.end_token_ids) == 1 else self.end_token_ids

    def find_prompt(self, language=None, task=None):
        """The ids that a text begins with, a tuple.

        Args:
            language: str, the code of what is spoken or its English name; None for the own.
            task: str, `"transcribe"` or `"translate"`, into English; None for the own.
        """
        language = self._find_language(language or self.language)
        task = task or self.task
        if task is not None and task not in self.tasks:
            raise ValueError(
                f"task={task!r}: "
                + (
                    f"expected one of {', '.join(self.tasks)}."
                    if self.tasks
                    else "this model only writes what is said, in one language: leave it out."
                )
            )
        chosen = [] if language is None else [self.languages[language]]
        chosen += [] if task is None else [self.tasks[task]]
        return (self.begin_token_id, *chosen, self.no_timestamps_id)

    def _find_language(self, language):
        """The code of a language in `languages`, or None."""
        if language is None:
            return None
        name = str(language).lower().strip("<|>").replace(" ", "_")
        code = NAMES.get(name, name)
        if code not in self.languages:
            raise ValueError(
                f"language={language!r}: "
                + (
                    f"expected one of {', '.join(sorted(self.languages))}, or its English name."
                    if self.languages
                    else "this model knows one language: leave it out."
                )
            )
        return code

    def _read(self, sound):
        array = super()._read(sound)
        if self.is_long(array):
            name = "A recording of samples" if hasattr(sound, "shape") else sound
            raise ValueError(
                f"{name} has {len(array) / self.sampling_rate:.2f} seconds, and this model hears "
                f"{self.seconds:g} at a time: cut it into pieces where nobody speaks, and pass "
                "these."
            )
        return array

    def target_ids(self, texts):
        """int32 ids (T,) of each of `texts`, from the prompt to END.

        A space is in front of the text, as Whisper writes it.
        """
        texts = check_texts(type(self).__name__, texts)
        rows = [self.tokenizer.encode_plain(f" {text.strip()}") for text in texts]
        prompt, end = self.find_prompt(), self.end_token_ids[:1]
        return [np.array([*prompt, *row, *end], "int32") for row in rows]

    columns = SpeechTextPreprocessor.columns

    def texts(self, ids):
        """The texts that the model has written: ids (B, T), each up to END, without times."""
        rows = [cut_at_end(row, self.end_token_ids) for row in ids]
        rows = [row[row <= self.no_timestamps_id] for row in rows]
        return [text.strip() for text in self.tokenizer.decode(rows)]

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        names = ("begin_token_id", "no_timestamps_id", "languages", "tasks", "language", "task")
        return {
            "kind": self.kind,
            "tokenizer": self.tokenizer.config(),
            "sampling_rate": self.sampling_rate,
            "seconds": self.seconds,
            "end_token_ids": list(self.end_token_ids),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind)
        ends = config.values.get("end_token_ids")
        count = len(ends) if isinstance(ends, list) and ends else 1
        choices = {}
        for name in ("languages", "tasks"):
            known = config.object(name)
            choices[name] = {key: known.whole(key, least=0, most=MOST_ID) for key in known.values}
        return cls(
            PretrainedTokenizer.load(folder, config.object("tokenizer")),
            config.whole("sampling_rate", most=MOST_RATE),
            config.number("seconds", above=0),
            config.wholes("end_token_ids", count, least=0, most=MOST_ID),
            config.whole("begin_token_id", least=0, most=MOST_ID),
            config.whole("no_timestamps_id", least=0, most=MOST_ID),
            **choices,
            language=config.text("language", default=None),
            task=config.text("task", default=None),
        )
