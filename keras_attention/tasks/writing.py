"""`Writing`: how an encoder-decoder writes texts, and what tasks share that write."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_number, check_whole_number
from keras_attention.core.lazy import generation, visualization
from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS
from keras_attention.tasks.generators import check_ids, get_generation_options
from keras_attention.tasks.interface import AttentionMaps

FINISHING_SECONDS = 138.0  # of three endpoints in each of three files
SUPPRESSED = ("suppress_tokens", "begin_suppress_tokens")


@dataclasses.dataclass(frozen=True)
class Writing:
    """How texts are written: the search, its limits, and what no text has.

    Args:
        beam: int, how many texts the search holds at a time; 1 is greedy.
        length_penalty: float, of `ka.generation.Beam`: 0 prefers short texts.
        max_new_tokens: int, the tokens of a text at most.
        forced_bos_token_id: int, the first token of every text, or None; as Hugging Face has it.
        suppress_tokens: ints, tokens that are never written.
        begin_suppress_tokens: ints, tokens that are never written first.
        min_new_tokens: int, the tokens of a text at least, before its end.
        no_repeat_ngram_size: int, how many tokens in a row no text has twice (Paulus et al.,
            2018, section 2.5, with 3, of summaries); None for no limit.

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
        """Read it in the entry of a manifest (`Fields`), which it checks."""
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
        """Return the entry of a manifest, with the ids of a preprocessor."""
        plain = {field.name: field.default for field in dataclasses.fields(self)}
        always = ("beam", "length_penalty", "max_new_tokens")
        return {
            **{name: getattr(self, name) for name in always},
            "start_token_id": preprocessor.start_token_id,
            "end_token_id": preprocessor.end_token_id,
            "padding_id": preprocessor.padding_id,
            **{
                name: value
                for name, value in dataclasses.asdict(self).items()
                if name not in always and value != plain[name]
            },
        }


def _check_ids(ids):
    return tuple(
        check_whole_number("Writing", "a suppressed id", i, least=0, most=MOST_ID) for i in ids
    )


def check_score(task, score):
    """Return the name of the score of a task: the first of its `score_names` where it is None."""
    score = task.score_names[0] if score is None else score
    if score not in task.score_names:
        expected = ", ".join(task.score_names)
        raise ValueError(f"{type(task).__name__}(score={score!r}): expected one of {expected}.")
    return score


def draw_writing(task, inputs, name_keys, looked, path):
    """Return the maps of cross-attention while a text is written, and a picture of the last one.

    Args:
        task: the task that writes.
        inputs: what its preprocessor makes of one input.
        name_keys: function of how many keys there are, that names each.
        looked: str, ends the title.
        path: where the picture goes, or None.
    """
    maps, layer, weights, queries = write_with_attention(task, inputs)
    keys = name_keys(weights.shape[-1])
    figure = visualization.attention_map(
        weights, queries, keys, title=f"{layer}: {looked}", path=path
    )
    return AttentionMaps(maps, queries, keys, figure)


def write_with_attention(task, inputs):
    """Return (all maps, path and weights (1, N, T, S) of the last cross-attention, T tokens)."""
    options = get_generation_options(task.metadata)
    options |= {"sampler": "greedy", "return_attention": True}
    del options["generate"]
    result = generation.generate(task.model, inputs, **options)
    layer, weights = find_last_of_source(result.attention)
    ends = np.flatnonzero(np.isin(result.ids[0], task.preprocessor.end_token_id))
    length = 1 + int(ends[0]) if ends.size else None
    queries = task.preprocessor.target.pieces(result.ids[0][:length])
    return dict(result.attention), layer, weights[:, :, : len(queries)], queries


def find_last_of_source(maps):
    """Return (path, weights) of the last layer that looks at the source.

    It is the last of those called cross-attention, or the only one.
    """
    crossing = [path for path in maps if "cross_attention" in path] or list(maps)
    return crossing[-1], maps[crossing[-1]]
