"""`ReadingTokenizer` and `WritingTokenizer`: the interfaces that preprocessors rely on."""

import typing


@typing.runtime_checkable
class ReadingTokenizer(typing.Protocol):
    """The interface of tokenizers of a model's input: `Vocabulary` and `PretrainedTokenizer`.

    Attributes:
        padding_id: int, the id that pads shorter rows, or None if every id is a token.
        vocabulary_size: int, the number of ids, or None if a model may have more.
        unit: str, the unit of length limits, such as `"words"`.
        max_length: int, the maximum number of tokens that a model reads, or None for no limit.
        has_segments: bool, whether the model also reads `"segment_ids"`.
    """

    padding_id: int | None
    vocabulary_size: int | None
    unit: str
    max_length: int | None
    has_segments: bool

    def encode_text(self, text, max_length=None):
        """Return the int32 ids (T,) of a string, with special tokens, cut to `max_length`."""

    def split(self, text, max_length=None):
        """Return the tokens of `encode_text`, a list of str."""

    def count(self, text):
        """Return the number of tokens in a string."""

    def encode_words(self, words, *, max_length=None):
        """Convert a list of words to ids: return (ids, position of each word's first token)."""

    def encode_spans(self, text):
        """Return (ids, spans) of a string. `spans` (n, 2) are the (start, end) of each token."""

    def pieces(self, ids):
        """Return the tokens with these ids, a list of str."""


@typing.runtime_checkable
class WritingTokenizer(typing.Protocol):
    """The interface of tokenizers of a model's output: all tokenizers except `Vocabulary`.

    Attributes:
        padding_id: int, the id that pads shorter rows, or None if every id is a token.
        vocabulary_size: int, the number of ids, or None if a model may have more.
        has_segments: bool, whether the model also reads `"segment_ids"`.
        mask_token_id: int, the id of the mask token, or None if the tokenizer has no mask token.
        around: two tuples of ints, the special tokens before and after a text.
    """

    padding_id: int | None
    vocabulary_size: int | None
    has_segments: bool
    mask_token_id: int | None
    around: tuple

    def encode_plain(self, text):
        """Return the ids of a string, without special tokens."""

    def encode_sources(self, texts):
        """Return a list with the int32 ids (T,) of each encoder input, with special tokens."""

    def encode_targets(self, texts):
        """Return a list with the ids of each decoder target, without the start token."""

    def decode(self, rows):
        """Return a list of str, one for each list of ids."""

    def token_texts(self):
        """Return two lists with the text of each id, which constraints on generated text need.

        The first list is for an id after other ids, the second for the first id of a row. A text is
        a str, or bytes that may be a part of a character. None stands for an id that is special, or
        cannot be decoded alone. `decode` joins the texts of ids.
        """

    def pieces(self, ids):
        """Return the tokens with these ids, a list of str."""
