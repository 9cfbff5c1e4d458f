"""Builds tokenizers from text, by name: characters, words and subwords."""

from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.subwords import Subwords

TOKENIZERS = {
    "characters": (Characters, ".json"),
    "words": (Words, ".json"),
    "subwords": (Subwords, ".model"),
}


def build_tokenizer(kind, texts, vocabulary_size=None, *, mask_token=False):
    """Build a tokenizer whose vocabulary is collected from a list of strings.

    Args:
        kind: `"characters"`, `"words"` or `"subwords"`.
        texts: list of str.
        vocabulary_size: int, the number of subwords, or the maximum number of words. Ignored for
            characters.
        mask_token: bool, whether to reserve an id for `[MASK]`. `"words"` do not support it.

    Raises:
        ValueError: `kind` is not one of the three names.
    """
    if kind == "subwords":
        return Subwords.build(texts, vocabulary_size, mask_token=mask_token, shrink=True)
    if kind == "words" and not mask_token:
        return Words.build(texts, max_size=vocabulary_size)
    if kind == "characters":
        return Characters.build(texts, mask_token=mask_token)
    kinds = [name for name in TOKENIZERS if not (mask_token and name == "words")]
    raise ValueError(f"tokens={kind!r}: expected one of {', '.join(kinds)}.")


def name_kind(tokenizer):
    """Return (kind, file suffix) for saving a tokenizer, such as `("words", ".json")`."""
    return next((k, suffix) for k, (cls, suffix) in TOKENIZERS.items() if type(tokenizer) is cls)


def load_own_tokenizer(fields):
    """Load the tokenizer that `fields`, an entry of `manifest.json`, describes."""
    cls, _ = fields.one_of("kind", TOKENIZERS)
    return cls.load(fields.file("file"))
