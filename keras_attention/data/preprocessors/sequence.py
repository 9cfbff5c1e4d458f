"""`SequencePreprocessor`: texts to the inputs of a model that generates, and ids back to texts."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, Ragged
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.subwords import (
    BEGIN_ID,
    END_ID,
    PADDING_ID,
    UNKNOWN_ID,
    Subwords,
)
from keras_attention.files.manifest import read_preprocessing, save_preprocessing

TOKENIZERS = {
    "characters": (Characters, ".json"),
    "words": (Words, ".json"),
    "subwords": (Subwords, ".model"),
}


def build_tokenizer(kind, texts, vocabulary_size=None, *, mask_token=False):
    """One of `TOKENIZERS`, by its name, of texts to train on.

    Args:
        kind: `"characters"`, `"words"` or `"subwords"`.
        texts: list of str.
        vocabulary_size: int, how many subwords, or words at most; the characters are those there
            are.
        mask_token: bool, whether `[MASK]` has an id; words have none.
    """
    if kind == "subwords":
        return Subwords.build(texts, vocabulary_size, mask_token=mask_token, shrink=True)
    if kind == "words" and not mask_token:
        return Words.build(texts, max_size=vocabulary_size)
    if kind == "characters":
        return Characters.build(texts, mask_token=mask_token)
    known = [name for name in TOKENIZERS if not (mask_token and name == "words")]
    raise ValueError(f"tokens={kind!r}: expected one of {', '.join(known)}.")


@dataclasses.dataclass(frozen=True)
class SequencePreprocessor:
    """Texts to ids and back, for an encoder-decoder or for a language model.

    Args:
        target: `Characters`, `Words` or `Subwords`, of what the model writes.
        source: the same for what an encoder reads; `target` itself if both share a vocabulary.
            None for a language model.

    Calling it gives what `ka.generation.generate` takes. For an encoder-decoder that is int32 ids
    (B, S): of every source its tokens and END, then padding. For a language model it is a list of
    int32 ids (T,): every prompt as it is, without BEGIN and END.

    Example:

    ```python
    import keras_attention as ka

    german, english = ka.data.Characters.build(["ja nein"]), ka.data.Characters.build(["yes no"])
    preprocessor = ka.data.SequencePreprocessor(english, german)
    ids = preprocessor(["nein", "ja"])
    assert ids.shape == (2, 5) and ids[1].tolist()[2:] == [3, 0, 0]
    no = [*english.encode(["no"])[0], preprocessor.end_token_id]
    assert preprocessor.texts([no]) == ["no"]
    ```
    """

    target: Characters | Words | Subwords
    source: Characters | Words | Subwords | None = None

    @property
    def padding_id(self):
        """int, what fills up the shorter texts of a batch."""
        return PADDING_ID

    @property
    def start_token_id(self):
        """int, what an encoder-decoder's target begins with."""
        return BEGIN_ID

    @property
    def end_token_id(self):
        """int, what ends a target, and a source."""
        return END_ID

    def __call__(self, texts, sequence_length=None):
        """The model's inputs for a batch of texts.

        Args:
            texts: list of str: sources, or prompts of a language model.
            sequence_length: int S, pads sources to that length; None pads to the longest.
        """
        if self.source is not None:
            return padded(self.source_ids(texts), sequence_length)
        if sequence_length is not None:
            raise ValueError(
                f"sequence_length={sequence_length}: a language model's prompts are not padded."
            )
        return self.target.encode(texts)

    def source_ids(self, texts):
        """int32 ids (S,) of each of `texts`, with END."""
        if self.source is None:
            raise ValueError("This preprocessor has no source: it is one of a language model.")
        return [np.append(row, np.int32(END_ID)) for row in self.source.encode(texts)]

    def target_ids(self, texts):
        """int32 ids (T + 2,) of each of `texts`, from BEGIN to END."""
        begin, end = np.int32([BEGIN_ID]), np.int32([END_ID])
        return [np.concatenate([begin, row, end]) for row in self.target.encode(texts)]

    def columns(self, pairs):
        """`Columns` of a list of `Pair`, or of any (source, target) with more behind.

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
        """The texts that a model has written: ids (B, T), or a list of ids (T,), each up to END."""
        return self.target.decode(ids)

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {
            "kind": "generator",
            "target": self._entry("target"),
            "source": None if self.source is None else self._entry("source"),
            "source_ends_with_end": self.source is not None,
            "padding_id": PADDING_ID,
            "unknown_id": UNKNOWN_ID,
            "start_token_id": BEGIN_ID,
            "end_token_id": END_ID,
        }

    def _entry(self, side):
        """{"kind": which tokenizer, "file": where it is}; one that is shared is there once."""
        shared = self.source == self.target
        tokenizer = getattr(self, side)
        kind = next(kind for kind, (cls, _) in TOKENIZERS.items() if isinstance(tokenizer, cls))
        return {"kind": kind, "file": ("tokens" if shared else side) + TOKENIZERS[kind][1]}

    def save(self, folder):
        """Writes the vocabularies into `folder`, and its config into `manifest.json` there.

        Other entries of the manifest stay.
        """
        sides = [side for side in ("target", "source") if getattr(self, side) is not None]
        parts = {self._entry(side)["file"]: getattr(self, side) for side in sides}
        save_preprocessing(folder, self.config(), parts)

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, "generator")
        kind, path = _entry(config.object("target"))
        target = kind.load(path)
        if config.values.get("source") is None:
            return cls(target)
        source_kind, source_path = _entry(config.object("source"))
        if (source_kind, source_path) == (kind, path):
            return cls(target, target)
        return cls(target, source_kind.load(source_path))


class TargetTexts:
    """What preprocessors share whose model writes a text beside an input that is no text.

    A dataclass with a field `target`, `Characters`, `Words` or `Subwords`.
    """

    @property
    def padding_id(self):
        """int, what fills up the shorter texts of a batch."""
        return PADDING_ID

    @property
    def start_token_id(self):
        """int, what every text begins with."""
        return BEGIN_ID

    @property
    def end_token_id(self):
        """int, what ends a text."""
        return END_ID

    def target_ids(self, texts):
        """int32 ids (T + 2,) of each of `texts`, from BEGIN to END."""
        return SequencePreprocessor(self.target).target_ids(texts)

    def texts(self, ids):
        """The texts that a model has written: ids (B, T), each up to END."""
        return self.target.decode(ids)

    def save(self, folder):
        """Writes the vocabulary; what else there is is in the task's entries of the manifest."""
        SequencePreprocessor(self.target).save(folder)

    @classmethod
    def load(cls, folder, **others):
        """Reads what `save` wrote; `others` are the other arguments."""
        return cls(SequencePreprocessor.load(folder).target, **others)


def _entry(fields):
    """The tokenizer's class, and its file, that an entry of the manifest names."""
    kind, _ = TOKENIZERS[fields.one_of("kind", TOKENIZERS)]
    return kind, fields.file("file")


def padded(rows, length=None):
    """int32 (B, T) of a list of ids, padded to the longest, or to `length`."""
    longest = max(map(len, rows), default=0)
    if length is not None and longest > length:
        raise ValueError(
            f"A text has {longest} tokens, END included, more than sequence_length={length}. "
            "Shorten it, or use a model for longer ones."
        )
    ids = np.full((len(rows), longest if length is None else length), PADDING_ID, "int32")
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = tokens
    return ids
