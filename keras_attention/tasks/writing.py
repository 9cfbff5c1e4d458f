"""`Writing`: the settings of beam search for tasks that generate text."""

import dataclasses

from keras_attention.core.checks import check_number, check_whole_number
from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS
from keras_attention.tasks.generators import check_ids

SUPPRESSED = ("suppress_tokens", "begin_suppress_tokens")


@dataclasses.dataclass(frozen=True)
class Writing:
    """The settings of beam search, for tasks that generate text from another input.

    The names are the same as in Hugging Face, except `beam` (`num_beams`).

    Args:
        beam: int, the beam width. 1 is greedy search.
        length_penalty: non-negative float, how much the search favors long outputs
            (`ka.generation.Beam`). With 0, it prefers short outputs.
        max_new_tokens: int, the maximum number of tokens in a text.
        forced_bos_token_id: int, the id of the first token of every text. None does not force one.
        suppress_tokens: sequence of int, ids of tokens that are never generated.
        begin_suppress_tokens: sequence of int, ids of tokens that are never generated first.
        min_new_tokens: int, the minimum number of tokens before the end token.
        no_repeat_ngram_size: int, n. No sequence of n tokens occurs twice in a text (Paulus et al.,
            2018, section 2.5, use 3 for summaries). None allows repetitions.

    Example:

    ```python
    import keras_attention as ka

    writing = ka.tasks.Writing(beam=3, max_new_tokens=20)
    assert writing.length_penalty == 0.0
    ```
    """

    beam: int = 1
    length_penalty: float = 0.0
    max_new_tokens: int = 64
    forced_bos_token_id: int | None = None
    suppress_tokens: tuple = ()
    begin_suppress_tokens: tuple = ()
    min_new_tokens: int = 0
    no_repeat_ngram_size: int | None = None

    def __post_init__(self):
        check_whole_number("Writing", "beam", self.beam, most=MOST_BEAMS)
        check_number(self, "length_penalty", least=0)
        most = check_whole_number(
            "Writing", "max_new_tokens", self.max_new_tokens, most=MOST_TOKENS
        )
        if self.forced_bos_token_id is not None:
            name = "forced_bos_token_id"
            check_whole_number("Writing", name, self.forced_bos_token_id, least=0)
        object.__setattr__(self, "suppress_tokens", _check_ids(self.suppress_tokens))
        object.__setattr__(self, "begin_suppress_tokens", _check_ids(self.begin_suppress_tokens))
        check_whole_number("Writing", "min_new_tokens", self.min_new_tokens, least=0, most=most)
        if self.no_repeat_ngram_size is not None:
            check_whole_number("Writing", "no_repeat_ngram_size", self.no_repeat_ngram_size)

    @classmethod
    def read(cls, fields):
        """Make a `Writing` from `fields`, the entry `writing` of a task's `manifest.json`."""
        check_ids(fields, "start_token_id")
        check_ids(fields, "end_token_id")
        fields.whole("padding_id", least=0, most=MOST_ID, default=None)
        suppressed = {}
        for name in SUPPRESSED:
            if (ids := fields.values.get(name)) is not None:
                count = len(ids) if isinstance(ids, list) else 1
                suppressed[name] = tuple(fields.wholes(name, count, least=0, most=MOST_ID))
        return cls(
            beam=fields.whole("beam", most=MOST_BEAMS),
            length_penalty=fields.number("length_penalty", least=0, default=0.0),
            max_new_tokens=fields.whole("max_new_tokens", most=MOST_TOKENS),
            forced_bos_token_id=fields.whole(
                "forced_bos_token_id", least=0, most=MOST_ID, default=None
            ),
            min_new_tokens=fields.whole("min_new_tokens", least=0, most=MOST_TOKENS, default=0),
            no_repeat_ngram_size=fields.whole(
                "no_repeat_ngram_size", most=MOST_TOKENS, default=None
            ),
            **suppressed,
        )

    def describe(self, preprocessor):
        """Return the entry `writing` of `manifest.json`, a dict with the preprocessor's ids, too.

        Apps read from this entry how to generate text.
        """
        settings = dataclasses.asdict(self)
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        always = ("beam", "length_penalty", "max_new_tokens")
        return {
            **{name: settings[name] for name in always},
            "start_token_id": preprocessor.start_token_id,
            "end_token_id": preprocessor.end_token_id,
            "padding_id": preprocessor.padding_id,
            **{
                name: value
                for name, value in settings.items()
                if name not in always and value != defaults[name]
            },
        }


def _check_ids(ids):
    return tuple(
        check_whole_number("Writing", "a suppressed id", i, least=0, most=MOST_ID) for i in ids
    )
