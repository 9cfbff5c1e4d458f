"""Tokenizers that are learnt from texts, by their names: characters, words and subwords."""

from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.subwords import Subwords

TOKENIZERS = {
    "characters": (Characters, ".json"),
    "words": (Words, ".json"),
    "subwords": (Subwords, ".model"),
}


def build_tokenizer(kind, texts, vocabulary_size=None, *, mask_token=False):
    """Return one of `TOKENIZERS`, by its name, of texts to train on.

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
    kinds = [name for name in TOKENIZERS if not (mask_token and name == "words")]
    raise ValueError(f"tokens={kind!r}: expected one of {', '.join(kinds)}.")


def name_kind(tokenizer):
    """Return (the name of a tokenizer in `TOKENIZERS`, the suffix of its file)."""
    kinds = ((kind, suffix) for kind, (cls, suffix) in TOKENIZERS.items() if type(tokenizer) is cls)
    return next(kinds)


def load_own_tokenizer(fields):
    """Return the tokenizer that an entry of a manifest, `Fields`, names."""
    cls, _ = fields.one_of("kind", TOKENIZERS)
    return cls.load(fields.file("file"))
