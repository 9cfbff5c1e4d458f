"""`WritingTask`: a task whose encoder-decoder writes a text, with search, limits and picture."""

import numpy as np

from keras_attention.core.checks import check_number, check_whole_number
from keras_attention.core.lazy import generation, visualization
from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS
from keras_attention.tasks.generators import (
    FileGenerator,
    ModelGenerator,
    check_ids,
    get_generation_options,
)
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.task import Task

SUPPRESSED = ("suppress_tokens", "begin_suppress_tokens")
CONSTRAINING = {  # what may be said of the texts, and what stands for nothing said
    "forced_bos_token_id": None,
    **dict.fromkeys(SUPPRESSED, ()),
    "min_new_tokens": 0,
    "no_repeat_ngram_size": None,
}


class WritingTask(Task):
    """A task that writes a text for each input.

    Args:
        model: functional `keras.Model`, of the encoder's inputs and target ids (B, T) -> logits
            (B, T, V).
        preprocessor: what makes ids of texts; its `target` are the tokens that are written.
        beam: int, how many texts the search holds at a time; 1 is greedy.
        length_penalty: float, of `ka.generation.Beam`: 0 prefers short texts.
        max_new_tokens: int, the tokens of a text at most; None for `longest` of the class.
        score: str, one of `score_names`, what `evaluate` gives; None for the first of them.
        forced_bos_token_id: int, the first token of every text, or None; as Hugging Face has it.
        suppress_tokens: ints, tokens that are never written.
        begin_suppress_tokens: ints, tokens that are never written first.
        min_new_tokens: int, the tokens of a text at least, before its end.
        no_repeat_ngram_size: int, how many tokens in a row no text has twice (Paulus et al.,
            2018, section 2.5, with 3, of summaries); None for no limit.
    """

    score_names = ()
    longest = 64  # tokens, unless said otherwise
    predict_options = ("beam",)
    finishing_seconds = 138.0  # of three endpoints in each of three files

    def __init__(
        self,
        model,
        preprocessor,
        *,
        beam=1,
        length_penalty=0.0,
        max_new_tokens=None,
        score=None,
        forced_bos_token_id=None,
        suppress_tokens=(),
        begin_suppress_tokens=(),
        min_new_tokens=0,
        no_repeat_ngram_size=None,
        builder=None,
    ):
        super().__init__(model, preprocessor, builder=builder)
        owner = type(self).__name__
        self.beam = check_whole_number(owner, "beam", beam, most=MOST_BEAMS)
        self.length_penalty = length_penalty
        check_number(self, "length_penalty", least=0)
        self.max_new_tokens = check_whole_number(
            owner,
            "max_new_tokens",
            self.longest if max_new_tokens is None else max_new_tokens,
            most=MOST_TOKENS,
        )
        score = self.score_names[0] if score is None else score
        if score not in self.score_names:
            expected = ", ".join(self.score_names)
            raise ValueError(f"{owner}(score={score!r}): expected one of {expected}.")
        self.score = score
        self.forced_bos_token_id = forced_bos_token_id
        if forced_bos_token_id is not None:
            check_whole_number(owner, "forced_bos_token_id", forced_bos_token_id, least=0)
        self.suppress_tokens = _check_ids(owner, suppress_tokens)
        self.begin_suppress_tokens = _check_ids(owner, begin_suppress_tokens)
        self.min_new_tokens = check_whole_number(
            owner, "min_new_tokens", min_new_tokens, least=0, most=self.max_new_tokens
        )
        self.no_repeat_ngram_size = no_repeat_ngram_size
        if no_repeat_ngram_size is not None:
            check_whole_number(owner, "no_repeat_ngram_size", no_repeat_ngram_size)

    @classmethod
    def check_manifest(cls, fields):
        fields.one_of("score", cls.score_names)
        known = fields.object("writing")
        known.whole("beam", most=MOST_BEAMS)
        known.number("length_penalty", least=0, default=0.0)
        known.whole("max_new_tokens", most=MOST_TOKENS)
        check_ids(known, "start_token_id")
        check_ids(known, "end_token_id")
        known.whole("padding_id", least=0, most=MOST_ID, default=None)
        known.whole("forced_bos_token_id", least=0, most=MOST_ID, default=None)
        for name in SUPPRESSED:
            if (ids := known.values.get(name)) is not None:
                count = len(ids) if isinstance(ids, list) else 1
                known.wholes(name, count, least=0, most=MOST_ID)
        known.whole("min_new_tokens", least=0, most=MOST_TOKENS, default=0)
        known.whole("no_repeat_ngram_size", most=MOST_TOKENS, default=None)

    @classmethod
    def read_settings(cls, manifest):
        known = manifest["writing"]
        return {
            "beam": known["beam"],
            "length_penalty": known.get("length_penalty", 0.0),
            "max_new_tokens": known["max_new_tokens"],
            "score": manifest["score"],
            **{name: known[name] for name in CONSTRAINING if known.get(name) is not None},
        }

    @property
    def settings(self):
        constraining = {name: getattr(self, name) for name in CONSTRAINING}
        return {
            "score": self.score,
            "writing": {
                "beam": self.beam,
                "length_penalty": self.length_penalty,
                "max_new_tokens": self.max_new_tokens,
                "start_token_id": self.preprocessor.start_token_id,
                "end_token_id": self.preprocessor.end_token_id,
                "padding_id": self.preprocessor.padding_id,
                **{k: value for k, value in constraining.items() if value != CONSTRAINING[k]},
            },
        }

    def open_runner(self, path):
        return FileGenerator(path, self.metadata)

    def wrap_model(self, model, path=None):
        return ModelGenerator(model, self.metadata, path)

    def draw_attention(self, inputs, name_keys, looked, path):
        """The maps of cross-attention while a text is written, and a picture of the last one.

        Args:
            inputs: what the preprocessor makes of one input.
            name_keys: function of how many keys there are, that names each.
            looked: str, ends the title.
            path: where the picture goes, or None.
        """
        maps, layer, weights, queries = self.write_with_attention(inputs)
        keys = name_keys(weights.shape[-1])
        figure = visualization.attention_map(
            weights, queries, keys, title=f"{layer}: {looked}", path=path
        )
        return AttentionMaps(maps, queries, keys, figure)

    def write_with_attention(self, inputs):
        """(all maps, path and weights (1, N, T, S) of the last cross-attention, T tokens)."""
        options = get_generation_options(self.metadata)
        options |= {"sampler": "greedy", "return_attention": True}
        del options["generate"]
        result = generation.generate(self.model, inputs, **options)
        layer, weights = find_last_of_source(result.attention)
        ends = np.flatnonzero(np.isin(result.ids[0], self.preprocessor.end_token_id))
        length = 1 + int(ends[0]) if ends.size else None
        queries = self.preprocessor.target.pieces(result.ids[0][:length])
        return dict(result.attention), layer, weights[:, :, : len(queries)], queries


def _check_ids(owner, ids):
    return tuple(
        check_whole_number(owner, "a suppressed id", i, least=0, most=MOST_ID) for i in ids
    )


def find_last_of_source(maps):
    """(path, weights) of the last layer that looks at the source: the only one, or the last of
    those called cross-attention.
    """
    crossing = [path for path in maps if "cross_attention" in path] or list(maps)
    return crossing[-1], maps[crossing[-1]]
