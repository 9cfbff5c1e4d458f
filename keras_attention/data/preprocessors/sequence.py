"""`SequencePreprocessor`: converts strings to inputs of a generating model, and ids to strings."""

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
    """Base class of preprocessors for models that generate text.

    Subclasses have the fields `target`, a tokenizer, and `end_token_ids`.
    """

    @property
    def tokenizer(self):
        """Return `target`, the tokenizer of the model's output."""
        return self.target

    @property
    def end_token_id(self):
        """int, the id that ends a text, or a tuple of ints if several ids can end a text."""
        return self.end_token_ids[0] if len(self.end_token_ids) == 1 else self.end_token_ids


@dataclasses.dataclass(frozen=True)
class SequencePreprocessor(TextWriter):
    """Converts strings to ids and back, for an encoder-decoder or for a language model.

    Call the object on a list of strings to get the input of `ka.generation.generate`. For an
    encoder-decoder, this input is int32 ids (B, S): the tokens of each source, followed by the end
    id (or a checkpoint's special tokens) and padding. For a language model, it is a list of int32
    ids (T,), the prompts. A checkpoint's special tokens are added before each prompt, but not after
    the prompt.

    Args:
        target: `Characters`, `Words`, `Subwords` or `PretrainedTokenizer`, the tokenizer of the
            model's output.
        source: the tokenizer of the encoder's input, one of the same classes. It may be `target`
            itself if both share a vocabulary. None for a language model.
        end_token_ids: int or ints. Each of these ids ends a generated text. The first one is
            appended to training text.
        start_token_id: int, the first token of an encoder-decoder's target.
        prefix: str to put before every source, such as T5's `"translate English to German: "`.

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

    target: Characters | Words | Subwords | PretrainedTokenizer
    source: Characters | Words | Subwords | PretrainedTokenizer | None = None
    end_token_ids: tuple = (END_ID,)
    start_token_id: int = BEGIN_ID
    prefix: str = ""
    kind = "generator"

    def __post_init__(self):
        class_name = "SequencePreprocessor"
        object.__setattr__(self, "end_token_ids", check_ends(class_name, self.end_token_ids))
        check_whole_number(class_name, "start_token_id", self.start_token_id, least=0, most=MOST_ID)
        if not isinstance(self.prefix, str):
            raise ValueError(f"{class_name}(prefix={self.prefix!r}): expected a string.")
        if self.source is None and self.prefix:
            raise ValueError(
                f"{class_name}(prefix={self.prefix!r}) is for sources: write the prefix into the "
                "prompts of a language model."
            )
        if self.source is not None and self.source.padding_id is None:
            raise ValueError(f"{class_name}: {self.source!r} has no padding for shorter sources.")

    @property
    def padding_id(self):
        """int, the id that pads shorter rows, or None if rows are not padded."""
        return None if self.is_pretrained and self.source is None else self.target.padding_id

    def __call__(self, texts, sequence_length=None):
        """Convert a list of strings (sources, or prompts of a language model) to model inputs.

        Sources are padded to `sequence_length`, or to the longest source if it is None.
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
        """Return a list with the int32 ids (S,) of each source in `texts`.

        The prefix and special tokens are added. Raise a ValueError if the preprocessor has no
        `source`.
        """
        if self.source is None:
            raise ValueError(
                "A language model has no source: expected a preprocessor with source=."
            )
        texts = check_texts(type(self).__name__, texts)
        return self.source.encode_sources([self.prefix + text for text in texts])

    def target_ids(self, texts):
        """Return a list with the int32 ids (T,) of each target in `texts`.

        A begin id and an end id are added.
        """
        rows = self.target.encode_targets(texts)
        return [end_row([self.start_token_id, *row], self.end_token_ids) for row in rows]

    def columns(self, pairs):
        """Convert `pairs`, a list of `Pair`, to `Columns` for `ka.data.batches`.

        Inputs are int32 `"source_ids"` (B, S) and `"target_ids"` (B, T), which start with the begin
        id. Labels are the next ids, int32 (B, T), up to the end id, and -1 at padding.
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
        """Convert generated ids, (B, T) or a list of arrays (T,), to a list of str.

        Each text ends before the first end id.
        """
        return self.target.decode([cut_at_end(row, self.end_token_ids) for row in ids])

    def config(self):
        if self.is_pretrained:
            return super().config() | {
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
        """Return the entry of `manifest.json` for a tokenizer, `side` being "source" or "target".

        If both sides share a tokenizer, it is saved in one file.
        """
        kind, suffix = name_kind(getattr(self, side))
        return {"kind": kind, "file": (TOKENS if self.source == self.target else side) + suffix}

    def parts(self):
        if self.is_pretrained:
            return super().parts()
        sides = [side for side in ("target", "source") if getattr(self, side) is not None]
        return {self._entry(side)["file"]: getattr(self, side) for side in sides}

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
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
    """Base class of preprocessors for models that generate text from images or sound.

    Subclasses are dataclasses with a field `target`: `Characters`, `Words`, `Subwords` or
    `PretrainedTokenizer`.
    """

    end_token_ids, start_token_id = (END_ID,), BEGIN_ID

    def target_ids(self, texts):
        """Return a list with the int32 ids (T + 2,) of each of `texts`, with begin and end id."""
        return SequencePreprocessor(self.target).target_ids(texts)

    def texts(self, ids):
        """Convert generated ids (B, T) to a list of str. Each str ends before the first end id."""
        return self.target.decode(ids)

    def config(self):
        """Return a dict with the settings of the tokenizer, for the `manifest.json` of a preset."""
        return SequencePreprocessor(self.target).config()

    def parts(self):
        return super().parts() if self.is_pretrained else SequencePreprocessor(self.target).parts()

    @classmethod
    def load(cls, folder, **sizes):
        """Load a preprocessor from the files that `save` wrote into `folder`.

        `sizes` are the other constructor arguments, such as `image_size`.
        """
        return cls(SequencePreprocessor.load(folder).target, **sizes)


def check_ends(class_name, ends):
    """Convert `ends`, an int or several ints, to a tuple. Raise a ValueError if it is empty.

    `class_name` is the class that the message names.
    """
    ends = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    if not ends:
        raise ValueError(f"{class_name}: end_token_ids is empty: expected one or more ids.")
    for i in ends:
        check_whole_number(class_name, "end_token_ids", i, least=0, most=MOST_ID)
    return ends


def read_ends(config):
    """Return `end_token_ids`, a tuple of ints, from `config`, an entry of `manifest.json`."""
    ends = config.values.get("end_token_ids")
    count = len(ends) if isinstance(ends, list) and ends else 1
    return config.wholes("end_token_ids", count, least=0, most=MOST_ID)


def end_row(row, end_token_ids):
    """Return token ids as int32 (T,), with an end id at the end.

    `row` is a list of ids. The first of `end_token_ids` is appended, unless `row` already ends with
    one of these ids.
    """
    ends = () if row[-1] in end_token_ids and len(row) > 1 else end_token_ids[:1]
    return np.array([*row, *ends], "int32")


def cut_at_end(ids, end_token_ids):
    """Return the part of an array of ids (T,) before the first of `end_token_ids`."""
    ids = np.asarray(ids)
    ends = np.flatnonzero(np.isin(ids, end_token_ids))
    return ids[: ends[0]] if ends.size else ids
