"""`SequencePreprocessor`: texts to the inputs of a model that generates, and ids back to texts."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, Ragged, pad_rows
from keras_attention.data.preprocessors.tokenizer_owner import SUBWORD, TOKENS, TokenizerOwner
from keras_attention.data.tokenizers.building import load_own_tokenizer, name_kind
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import (
    BEGIN_ID,
    END_ID,
    UNKNOWN_ID,
    Subwords,
    check_texts,
)
from keras_attention.files.fields import MOST_ID
from keras_attention.files.manifest import read_preprocessing


class TextWriter(TokenizerOwner):
    """A preprocessor whose model writes texts, with fields `target` and `end_token_ids`."""

    @property
    def tokenizer(self):
        """Return the tokenizer of what the model writes."""
        return self.target

    @property
    def end_token_id(self):
        """int, or a tuple of ints: what ends a text."""
        return self.end_token_ids[0] if len(self.end_token_ids) == 1 else self.end_token_ids


@dataclasses.dataclass(frozen=True)
class SequencePreprocessor(TextWriter):
    """Texts to ids and back, for an encoder-decoder or for a language model.

    Args:
        target: `Characters`, `Words`, `Subwords` or `PretrainedTokenizer`, of what the model
            writes.
        source: the same for what an encoder reads; `target` itself if both share a vocabulary.
            None for a language model.
        end_token_ids: int or ints, any of which ends a text that is written; the first one ends
            those to train on.
        start_token_id: int, what an encoder-decoder's target begins with.
        prefix: str in front of every source, as T5 wants its task:
            `"translate English to German: "`.

    Calling it gives what `ka.generation.generate` takes. For an encoder-decoder that is int32 ids
    (B, S): of every source its tokens and END, or a checkpoint's special tokens, then padding. For
    a language model it is a list of int32 ids (T,): every prompt with a checkpoint's special tokens
    that stand before a text, and without those behind it.

    ```python
    import keras_attention as ka

    german, english = ka.data.Characters.build(["ja nein"]), ka.data.Characters.build(["yes no"])
    preprocessor = ka.data.SequencePreprocessor(english, german)
    ids = preprocessor(["nein", "ja"])
    assert ids.shape == (2, 5) and ids[1].tolist()[2:] == [3, 0, 0]
    no = [*english.encode(["no"])[0], preprocessor.end_token_id]
    assert preprocessor.texts([no]) == ["no"]

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "to", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(
        pieces, lowercase=True, has_segments=False
    )
    pairs = ka.data.SequencePreprocessor(
        tokenizer, tokenizer, end_token_ids=3, start_token_id=2, prefix="to "
    )
    assert pairs(["cats", "a"]).tolist() == [[2, 6, 5, 7, 3], [2, 6, 4, 3, 0]]
    assert pairs.target_ids(["cats"])[0].tolist() == [2, 2, 5, 7, 3]
    assert pairs.texts([[2, 5, 7, 3, 4]]) == ["cats"]
    prompts = ka.data.SequencePreprocessor(tokenizer, end_token_ids=(3, 1))
    assert prompts(["a cat"])[0].tolist() == [2, 4, 5]
    ```
    """

    target: Characters | Words | Subwords | PretrainedTokenizer
    source: Characters | Words | Subwords | PretrainedTokenizer | None = None
    end_token_ids: tuple = (END_ID,)
    start_token_id: int = BEGIN_ID
    prefix: str = ""
    kind = "generator"

    def __post_init__(self):
        owner = "SequencePreprocessor"
        ends = check_ends(owner, self.end_token_ids)
        object.__setattr__(self, "end_token_ids", ends)
        check_whole_number(owner, "start_token_id", self.start_token_id, least=0, most=MOST_ID)
        if not isinstance(self.prefix, str):
            raise ValueError(f"{owner}(prefix={self.prefix!r}): expected a string.")
        if self.source is None and self.prefix:
            raise ValueError(
                f"{owner}(prefix={self.prefix!r}) is for sources, and this is of a language model: "
                "write it into the texts."
            )
        if self.source is not None and self.source.padding_id is None:
            raise ValueError(f"{owner}: {self.source!r} has no padding, and sources differ.")

    @property
    def padding_id(self):
        """int, what fills up the shorter texts of a batch; None where nothing does."""
        return None if self.is_pretrained and self.source is None else self.target.padding_id

    def __call__(self, texts, sequence_length=None):
        """Return the model's inputs for a batch of texts.

        Args:
            texts: list of str: sources, or prompts of a language model.
            sequence_length: int S, pads sources to that length; None pads to the longest.
        """
        if self.source is not None:
            return pad_rows(self.source_ids(texts), self.padding_id, sequence_length)
        if sequence_length is not None:
            raise ValueError(
                f"sequence_length={sequence_length}: a language model's prompts are not padded."
            )
        before, _ = self.target.around
        rows = [self.target.encode_plain(text) for text in check_texts(type(self).__name__, texts)]
        return [np.array([*before, *row], "int32") for row in rows]

    def source_ids(self, texts):
        """int32 ids (S,) of each of `texts`, the prefix and special tokens included."""
        if self.source is None:
            raise ValueError("This preprocessor has no source: it is one of a language model.")
        texts = check_texts(type(self).__name__, texts)
        return self.source.encode_sources([self.prefix + text for text in texts])

    def target_ids(self, texts):
        """int32 ids (T,) of each of `texts`, from BEGIN to END."""
        rows = self.target.encode_targets(texts)
        return [end_row([self.start_token_id, *row], self.end_token_ids) for row in rows]

    def columns(self, pairs):
        """Return `Columns` of a list of `Pair`, or of any (source, target) with more behind.

        Inputs are int32 `"source_ids"` (B, S) and `"target_ids"` (B, T) from BEGIN on. Labels are
        the tokens that follow, END at last, int32 (B, T), -1 at padding.
        """
        sources = self.source_ids([pair[0] for pair in pairs])
        targets = self.target_ids([pair[1] for pair in pairs])
        inputs = {
            "source_ids": Ragged(sources, self.padding_id),
            "target_ids": Ragged([row[:-1] for row in targets], self.padding_id),
        }
        labels = Ragged([row[1:] for row in targets], -1)
        lengths = [max(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]
        return Columns(inputs, labels, lengths=lengths)

    def texts(self, ids):
        """Return the texts that a model has written.

        Ids (B, T), or a list of ids (T,), each up to END.
        """
        return self.target.decode([cut_at_end(row, self.end_token_ids) for row in ids])

    def config(self):
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        if self.is_pretrained:
            return self.describe_tokenizer() | {
                "end_token_ids": list(self.end_token_ids),
                "start_token_id": None if self.source is None else self.start_token_id,
                "prefix": self.prefix,
            }
        return {
            "kind": self.kind,
            "target": self._entry("target"),
            "source": None if self.source is None else self._entry("source"),
            "source_ends_with_end": self.source is not None,
            "padding_id": self.target.padding_id,
            "unknown_id": UNKNOWN_ID,
            "start_token_id": self.start_token_id,
            "end_token_id": self.end_token_id,
        }

    def _entry(self, side):
        """{"kind": which tokenizer, "file": where it is}; one that is shared is there once."""
        kind, suffix = name_kind(getattr(self, side))
        return {"kind": kind, "file": (TOKENS if self.source == self.target else side) + suffix}

    def parts(self):
        if self.is_pretrained:
            return super().parts()
        sides = [side for side in ("target", "source") if getattr(self, side) is not None]
        return {self._entry(side)["file"]: getattr(self, side) for side in sides}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind, SUBWORD + cls.kind)
        if config.values["kind"] != cls.kind:
            tokenizer = PretrainedTokenizer.load(folder, config.object("tokenizer"))
            start = config.whole("start_token_id", least=0, most=MOST_ID, default=None)
            ends, prefix = read_ends(config), config.text("prefix", default="")
            if start is None:
                return cls(tokenizer, end_token_ids=ends)
            return cls(tokenizer, tokenizer, ends, start, prefix)
        target = load_own_tokenizer(config.object("target"))
        if config.values.get("source") is None:
            return cls(target)
        source = load_own_tokenizer(config.object("source"))
        return cls(target, target if source == target else source)


class TargetTexts(TextWriter):
    """What preprocessors share whose model writes a text beside an input that is no text.

    A dataclass with a field `target`, `Characters`, `Words`, `Subwords` or `PretrainedTokenizer`.
    """

    end_token_ids, start_token_id = (END_ID,), BEGIN_ID

    def target_ids(self, texts):
        """int32 ids (T + 2,) of each of `texts`, from BEGIN to END."""
        return SequencePreprocessor(self.target).target_ids(texts)

    def texts(self, ids):
        """Return the texts that a model has written: ids (B, T), each up to END."""
        return self.target.decode(ids)

    def config(self):
        """Return the entry in the manifest: the vocabulary. What else there is is the task's."""
        return SequencePreprocessor(self.target).config()

    def parts(self):
        return super().parts() if self.is_pretrained else SequencePreprocessor(self.target).parts()

    @classmethod
    def load(cls, folder, **sizes):
        """Reads what `save` wrote; `sizes` are the other arguments."""
        return cls(SequencePreprocessor.load(folder).target, **sizes)


def check_ends(owner, ends):
    """Return `end_token_ids`, an int or ints, as a tuple of ids, at least one."""
    ends = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    if not ends:
        raise ValueError(f"{owner}: end_token_ids is empty, and a text must end.")
    for i in ends:
        check_whole_number(owner, "end_token_ids", i, least=0, most=MOST_ID)
    return ends


def read_ends(config):
    """Return the `end_token_ids` of a manifest's entry, `Fields`."""
    ends = config.values.get("end_token_ids")
    count = len(ends) if isinstance(ends, list) and ends else 1
    return config.wholes("end_token_ids", count, least=0, most=MOST_ID)


def end_row(row, end_token_ids):
    """int32 ids (T,), with the first of `end_token_ids` behind, unless it ends with one already."""
    ends = () if row[-1] in end_token_ids and len(row) > 1 else end_token_ids[:1]
    return np.array([*row, *ends], "int32")


def cut_at_end(ids, end_token_ids):
    """Return the ids (T,) that stand before the first of `end_token_ids`, an array."""
    ids = np.asarray(ids)
    ends = np.flatnonzero(np.isin(ids, end_token_ids))
    return ids[: ends[0]] if ends.size else ids
