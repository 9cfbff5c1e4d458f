"""`SubwordSequencePreprocessor`: texts to the inputs of a pretrained model that generates."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.preprocessors.sequence import SequencePreprocessor
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer, TokenizerOwner
from keras_attention.data.tokenizers.subwords import check_texts
from keras_attention.files.fields import MOST_ID
from keras_attention.files.manifest import read_preprocessing


@dataclasses.dataclass(frozen=True)
class SubwordSequencePreprocessor(TokenizerOwner):
    """Texts to ids and back by a checkpoint's tokenizer, for a model that generates.

    Args:
        tokenizer: `PretrainedTokenizer`, of both sides.
        end_token_ids: int or ints, any of which ends a text that is written; the first one ends
            those to train on.
        start_token_id: int, what an encoder-decoder's target begins with; None for a language
            model.
        prefix: str in front of every source, as T5 wants its task:
            `"translate English to German: "`.

    Calling it gives what `ka.generation.generate` takes. For an encoder-decoder that is int32 ids
    (B, S), padded. For a language model it is a list of int32 ids (T,): every prompt with the
    special tokens that stand before a text, and without those behind it.

    Example:

    ```python
    import keras_attention as ka

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "to", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(
        pieces, lowercase=True, has_segments=False
    )
    pairs = ka.data.SubwordSequencePreprocessor(tokenizer, 3, start_token_id=2, prefix="to ")
    assert pairs(["cats", "a"]).tolist() == [[2, 6, 5, 7, 3], [2, 6, 4, 3, 0]]
    assert pairs.target_ids(["cats"])[0].tolist() == [2, 2, 5, 7, 3]
    assert pairs.texts([[2, 5, 7, 3, 4]]) == ["cats"]
    prompts = ka.data.SubwordSequencePreprocessor(tokenizer, (3, 1))
    assert prompts(["a cat"])[0].tolist() == [2, 4, 5]
    ```
    """

    tokenizer: PretrainedTokenizer
    end_token_ids: tuple
    start_token_id: int | None = None
    prefix: str = ""
    kind = "subword_generator"

    def __post_init__(self):
        owner, ends = type(self).__name__, self.end_token_ids
        ends = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
        if not ends:
            raise ValueError(f"{owner}: end_token_ids is empty, and a text must end.")
        start = () if self.start_token_id is None else (self.start_token_id,)
        for name, ids in (("end_token_ids", ends), ("start_token_id", start)):
            for i in ids:
                check_whole_number(owner, name, i, least=0, most=MOST_ID)
        object.__setattr__(self, "end_token_ids", ends)
        if not isinstance(self.prefix, str):
            raise ValueError(f"{owner}(prefix={self.prefix!r}): expected a string.")
        if self.source is None and self.prefix:
            raise ValueError(
                f"{owner}(prefix={self.prefix!r}) is for sources, and this is of a language model: "
                "write it into the texts."
            )
        if self.source is not None and self.tokenizer.padding_id is None:
            raise ValueError(f"{owner}: {self.tokenizer!r} has no padding, and sources differ.")

    @property
    def target(self):
        """The tokenizer of what the model writes."""
        return self.tokenizer

    @property
    def source(self):
        """The tokenizer of what an encoder reads; None for a language model."""
        return None if self.start_token_id is None else self.tokenizer

    @property
    def padding_id(self):
        """int, what fills up the shorter sources of a batch; None for a language model."""
        return None if self.source is None else self.tokenizer.padding_id

    @property
    def end_token_id(self):
        """int, or a tuple of ints: what ends a text."""
        return self.end_token_ids[0] if len(self.end_token_ids) == 1 else self.end_token_ids

    def __call__(self, texts, sequence_length=None):
        """The model's inputs for a batch of texts.

        Args:
            texts: list of str: sources, or prompts of a language model.
            sequence_length: int S, pads sources to that length; None pads to the longest.
        """
        if self.source is not None:
            return self.tokenizer.stack(self.source_ids(texts), sequence_length)
        if sequence_length is not None:
            raise ValueError(
                f"sequence_length={sequence_length}: a language model's prompts are not padded."
            )
        before, _ = self.tokenizer.around
        texts = check_texts(type(self).__name__, texts)
        rows = [[*before, *self.tokenizer.encode_plain(text)] for text in texts]
        return [np.array(row, "int32") for row in rows]

    def source_ids(self, texts):
        """int32 ids (S,) of each of `texts`, the prefix and special tokens included."""
        if self.source is None:
            raise ValueError("This preprocessor has no source: it is one of a language model.")
        texts = [self.prefix + text for text in check_texts(type(self).__name__, texts)]
        return [np.array(row, "int32") for row in self.tokenizer.encode(texts)]

    def target_ids(self, texts):
        """int32 ids (T,) of each of `texts`, from the start token to END."""
        rows = self.tokenizer.encode_targets(texts)
        ends = [
            () if row and row[-1] in self.end_token_ids else self.end_token_ids[:1] for row in rows
        ]
        pairs = zip(rows, ends, strict=True)
        return [np.array([self.start_token_id, *row, *end], "int32") for row, end in pairs]

    columns = SequencePreprocessor.columns

    def texts(self, ids):
        """The texts that a model has written: ids (B, T), or a list of ids (T,), each up to END."""
        return self.tokenizer.decode([cut_at_end(row, self.end_token_ids) for row in ids])

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {
            "kind": self.kind,
            "tokenizer": self.tokenizer.config(),
            "end_token_ids": list(self.end_token_ids),
            "start_token_id": self.start_token_id,
            "prefix": self.prefix,
        }

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind)
        tokenizer = PretrainedTokenizer.load(folder, config.object("tokenizer"))
        ends = config.values.get("end_token_ids")
        count = len(ends) if isinstance(ends, list) and ends else 1
        return cls(
            tokenizer,
            config.wholes("end_token_ids", count, least=0, most=MOST_ID),
            config.whole("start_token_id", least=0, most=MOST_ID, default=None),
            config.text("prefix", default=""),
        )


def cut_at_end(ids, end_token_ids):
    """The ids (T,) that stand before the first of `end_token_ids`, an array."""
    ids = np.asarray(ids)
    ends = np.flatnonzero(np.isin(ids, end_token_ids))
    return ids[: ends[0]] if ends.size else ids
