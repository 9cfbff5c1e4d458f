"""`ReadingTokenizer` and `WritingTokenizer`: the protocols that preprocessors use."""

import typing


@typing.runtime_checkable
class ReadingTokenizer(typing.Protocol):
    """Tokenizer of texts that a model reads: `Vocabulary`, `PretrainedTokenizer`.

    Attributes:
        padding_id: int, the id after the end of a text; None where every id is a token.
        vocabulary_size: int; None where a model may have room for more ids.
        unit: str, what a limit counts, such as `"words"`.
        max_length: int, the tokens of a text that a model reads at most; None for any number.
        has_segments: bool, whether the model reads `"segment_ids"`, too.
    """

    padding_id: int | None
    vocabulary_size: int | None
    unit: str
    max_length: int | None
    has_segments: bool

    def encode_text(self, text, max_length=None):
        """Return ids int32 (T,) of the beginning of a text, special ones included."""

    def split(self, text, max_length=None):
        """Return the tokens of these ids, as str."""

    def count(self, text):
        """Return how many tokens a text has."""

    def encode_words(self, words, *, max_length=None):
        """Return the ids of a text that is split already, and where each word begins in them."""

    def encode_spans(self, text):
        """Return the ids of a text without special ones, and the characters of each, (n, 2)."""

    def pieces(self, ids):
        """Return the tokens of ids, as str."""


@typing.runtime_checkable
class WritingTokenizer(typing.Protocol):
    """Tokenizer of texts that a model writes or fills in.

    `Characters`, `Words`, `Subwords` and `PretrainedTokenizer` are.

    Attributes:
        padding_id, vocabulary_size, has_segments: as in `ReadingTokenizer`.
        mask_token_id: int, the id of a masked token; None where there is none.
        around: two tuples of ints, the special tokens before and after a text.
    """

    padding_id: int | None
    vocabulary_size: int | None
    has_segments: bool
    mask_token_id: int | None
    around: tuple

    def encode_plain(self, text):
        """Return the ids of a text without special ones."""

    def encode_sources(self, texts):
        """Return ids int32 (T,) of each text that an encoder reads, special ones included."""

    def encode_targets(self, texts):
        """Return the ids of each text that a decoder writes, without the first one."""

    def decode(self, rows):
        """Return the texts of lists of ids."""

    def pieces(self, ids):
        """Return the tokens of ids, as str."""
