"""`SpeechPrompt`: the special tokens at the start of Whisper's output."""

import dataclasses

from keras_attention.core.checks import check_whole_number
from keras_attention.files.fields import MOST_ID

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
NAMES = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True))  # Whisper's names of languages -> codes
ONE_TASK = "this model only transcribes one language. Leave it out."
ONE_LANGUAGE = "this model has one language. Leave it out."


@dataclasses.dataclass(frozen=True)
class SpeechPrompt:
    """The special tokens that choose language and task of a pretrained speech model.

    Whisper's output starts with a token for the spoken language and one for the task:
    transcription, or translation into English (Radford et al., 2022, section 2.3).

    Args:
        begin_token_id: int, the first token of the prompt.
        no_timestamps_id: int, the last token of the prompt. Greater ids are timestamps, which are
            removed when outputs are decoded.
        languages: dict from language code to token id, such as `{"de": 50261}`. Empty for a model
            with one language.
        tasks: dict from task name to token id, such as `{"transcribe": 50359, "translate": 50358}`.
            Empty for a model with one task.
        language: str, the default language: the code or English name of one of `languages`. None
            chooses English, or the first language if the model lacks English.
        task: str, the default task, one of `tasks`. None chooses the first.
        alignment_heads: pairs (layer, head) of the decoder's cross-attention that follow the sound
            when whole tokens are aligned, from `generation_config.json`. `transcribe` aligns
            letters, and uses these heads only if they are its argument `heads`.

    ```python
    import keras_attention as ka

    prompt = ka.data.SpeechPrompt(
        begin_token_id=1,
        no_timestamps_id=8,
        languages={"de": 4, "en": 5},
        tasks={"transcribe": 6, "translate": 7},
    )
    assert prompt.find() == (1, 5, 6, 8)
    assert prompt.find("german", "translate") == (1, 4, 7, 8)
    ```
    """

    begin_token_id: int
    no_timestamps_id: int
    languages: dict = dataclasses.field(default_factory=dict)
    tasks: dict = dataclasses.field(default_factory=dict)
    language: str | None = None
    task: str | None = None
    alignment_heads: tuple = ()

    def __post_init__(self):
        ids = {"begin_token_id": self.begin_token_id, "no_timestamps_id": self.no_timestamps_id}
        for name, i in (*ids.items(), *self.languages.items(), *self.tasks.items()):
            check_whole_number("SpeechPrompt", name, i, least=0, most=MOST_ID)
        heads = tuple(map(tuple, self.alignment_heads))
        for i in (number for pair in heads for number in pair):
            check_whole_number("SpeechPrompt", "alignment_heads", i, least=0, most=MOST_ID)
        if wrong := [pair for pair in heads if len(pair) != 2]:
            raise ValueError(
                f"SpeechPrompt(alignment_heads=...): expected pairs of a layer and a head, and "
                f"received {wrong[0]}."
            )
        object.__setattr__(self, "alignment_heads", heads)
        default = "en" if "en" in self.languages else next(iter(self.languages), None)
        chosen = self._find_language(self.language or default)
        object.__setattr__(self, "language", chosen)
        object.__setattr__(self, "task", self.task or next(iter(self.tasks), None))
        self.find()

    def find(self, language=None, task=None):
        """Return the prompt for a language and a task, a tuple of token ids.

        `language` is the code or English name of the spoken language. `task` is `"transcribe"`, or
        `"translate"` into English. None uses the default. Raise a ValueError if the model does not
        have the language or the task.
        """
        language = self._find_language(language or self.language)
        task = task or self.task
        if task is not None and task not in self.tasks:
            expected = f"expected one of {', '.join(self.tasks)}." if self.tasks else ONE_TASK
            raise ValueError(f"task={task!r}: {expected}")
        chosen = [] if language is None else [self.languages[language]]
        chosen += [] if task is None else [self.tasks[task]]
        return (self.begin_token_id, *chosen, self.no_timestamps_id)

    def _find_language(self, language):
        """Return the code of a language, given its code or English name. None stays None."""
        if language is None:
            return None
        name = str(language).lower().strip("<|>").replace(" ", "_")
        code = NAMES.get(name, name)
        if code not in self.languages:
            codes = ", ".join(sorted(self.languages))
            expected = f"expected one of {codes}, or its English name." if codes else ONE_LANGUAGE
            raise ValueError(f"language={language!r}: {expected}")
        return code

    @classmethod
    def read(cls, config):
        """Make a `SpeechPrompt` from `config`, an entry of `manifest.json`."""
        choices = {}
        for name in ("languages", "tasks"):
            ids = config.object(name)
            choices[name] = {key: ids.whole(key, least=0, most=MOST_ID) for key in ids.values}
        heads = config.values.get("alignment_heads", [])
        if not isinstance(heads, list) or not all(isinstance(pair, list) for pair in heads):
            raise config.error("alignment_heads", "a list of pairs [layer, head]")
        return cls(
            config.whole("begin_token_id", least=0, most=MOST_ID),
            config.whole("no_timestamps_id", least=0, most=MOST_ID),
            **choices,
            language=config.text("language", default=None),
            task=config.text("task", default=None),
            alignment_heads=heads,
        )

    def config(self):
        """Return the entries of `manifest.json`, a dict that `read` accepts."""
        entries = dataclasses.asdict(self)
        heads = [list(pair) for pair in entries.pop("alignment_heads")]
        return entries | ({"alignment_heads": heads} if heads else {})
