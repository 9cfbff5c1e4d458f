"""`TokenTexts`: the text that each token id writes."""

import dataclasses

import keras

from keras_attention.core.part import Part


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class TokenTexts(Part):
    r"""The text that each token id writes, for `Regex` and `JSONSchema`.

    Both constraints also take a tokenizer of `ka.data`. Use this class for tokenizers of other
    libraries. The text of a row must be the texts of its tokens, one after the other.

    Args:
        rest: for each id, str or bytes, or None for ids that may not occur, such as padding. Bytes
            may be a part of a character.
        first: the same, for the first token of a row, if a tokenizer drops a space there. An empty
            text makes the next token the first. None uses `rest`.

    ```python
    import keras_attention as ka

    letters = ka.generation.TokenTexts([None, "a", "b", b"\xc3", b"\xa4"])
    assert len(letters) == 5 and letters.encode()[4] == b"\xa4"
    ```
    """

    rest: tuple = dataclasses.field(repr=False)
    first: tuple | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "rest", _read_texts(self.rest))
        if self.first is not None:
            object.__setattr__(self, "first", _read_texts(self.first))
            if len(self.first) != len(self.rest):
                raise ValueError(
                    f"TokenTexts has {len(self.rest)} texts and {len(self.first)} first texts. "
                    "Expected one of each for every id."
                )
            if self.first == self.rest:
                object.__setattr__(self, "first", None)

    @classmethod
    def of(cls, tokens):
        """Return the `TokenTexts` for `tokens`: a tokenizer, a list of texts, or a `TokenTexts`.

        Anything else raises a ValueError.
        """
        if isinstance(tokens, cls):
            return tokens
        if hasattr(tokens, "token_texts"):
            return cls(*tokens.token_texts())
        if isinstance(tokens, (list, tuple)):
            return cls(tokens)
        raise ValueError(
            f"tokens={tokens!r} does not say what its tokens write. Expected a tokenizer of "
            "ka.data, a TokenTexts, or a list with the text of each id. Make a TokenTexts."
        )

    def __len__(self):
        return len(self.rest)

    def encode(self):
        """Return the texts of all ids but the first of a row: a list of bytes or None."""
        return _encode(self.rest)

    def encode_first(self):
        """Return the texts of first tokens: a list of bytes or None."""
        return _encode(self.rest if self.first is None else self.first)


def _read_texts(texts):
    """Return `texts` as a tuple of str or None. Bytes that are not UTF-8 become surrogates."""
    texts = [x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else x for x in texts]
    if wrong := [x for x in texts if not (x is None or isinstance(x, str))]:
        raise ValueError(f"TokenTexts: {wrong[0]!r} is no text. Expected str, bytes or None.")
    return tuple(texts)


def _encode(texts):
    return [None if x is None else x.encode("utf-8", "surrogateescape") for x in texts]
