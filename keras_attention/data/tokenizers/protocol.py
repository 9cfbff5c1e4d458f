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
        """Return the int32 ids (T,) of `text`, a str, with special tokens.

        The ids are cut to `max_length`. None uses the limit of the tokenizer.
        """

    def split(self, text, max_length=None):
        """Return the tokens of `text`, a list of str, for the same arguments as `encode_text`."""

    def count(self, text):
        """Return the number of tokens in `text`, a str."""

    def encode_words(self, words, *, max_length=None):
        """Convert `words`, a list of W str, to int32 ids (T,), and return (ids, positions).

        `positions`, ints (W,), are the indices in the ids of each word's first token. Raise a
        ValueError for more than `max_length` ids.
        """

    def encode_spans(self, text):
        """Return (ids, spans) of `text`. `spans` (n, 2) are the (start, end) of each token."""

    def pieces(self, ids):
        """Return the tokens with the given `ids` (T,), a list of str."""


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
        """Return the ids of `text`, a str, without special tokens."""

    def encode_sources(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, for an encoder.

        Special tokens are added.
        """

    def encode_targets(self, texts):
        """Return a list with the ids of each of `texts`, for a decoder, without the start token."""

    def decode(self, rows):
        """Return a list with a str for each list of ids in `rows`."""

    def token_texts(self):
        """Return two lists with the text of each id, which constraints on generated text need.

        The first list is for an id after other ids, the second for the first id of a row. A text is
        a str, or bytes that may be a part of a character. None stands for an id that is special, or
        cannot be decoded without its neighbors. `decode` joins the texts of ids.
        """

    def pieces(self, ids):
        """Return the tokens with the given `ids` (T,), a list of str."""
