"""`MaskedLMPreprocessor`: texts with `[MASK]` to the inputs of a model, and logits to tokens."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.preprocessors.sequence import TOKENIZERS
from keras_attention.data.tokenizers.entries import Characters
from keras_attention.data.tokenizers.subwords import (
    MASK_TOKEN,
    PADDING_ID,
    SPECIAL,
    UNKNOWN_ID,
    Subwords,
    check_texts,
)
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.files.manifest import read_preprocessing, save_preprocessing


@dataclasses.dataclass(frozen=True)
class MaskedLMPreprocessor:
    """Turns texts into the inputs of `ka.models.masked_language_model`, in NumPy alone.

    Args:
        tokenizer: `Characters` or `Subwords` with a `[MASK]`, built with `mask_token=True`.
        maximum_length: int, the most tokens of a text, as many as the model was trained on at once.

    Calling it on a list of texts gives the token ids int32 (B, T), 0 after the end of a text.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    characters = ka.data.Characters.build(["abba"], mask_token=True)
    preprocessor = ka.data.MaskedLMPreprocessor(characters, maximum_length=8)
    ids = preprocessor(["a[MASK]b", "ab"])
    assert ids.tolist() == [[5, 4, 6], [5, 6, 0]]
    logits = np.zeros((2, 3, 7))
    logits[0, 1, 6] = 2.0
    (masks, none) = preprocessor.candidates(ids, logits, top=1)
    assert masks[0][0]["token"] == "b" and round(masks[0][0]["probability"], 2) == 0.88
    assert none == []
    ```
    """

    tokenizer: Characters | Subwords
    maximum_length: int = 512
    padding_id = PADDING_ID

    def __post_init__(self):
        if getattr(self.tokenizer, "mask_token_id", None) is None:
            raise ValueError(
                f"MaskedLMPreprocessor: {self.tokenizer!r} has no [MASK]: build it with "
                "mask_token=True."
            )
        check_whole_number(
            "MaskedLMPreprocessor", "maximum_length", self.maximum_length, most=MOST_TOKENS
        )

    def __call__(self, texts, sequence_length=None):
        """The model's inputs for a batch of texts.

        Args:
            texts: list of str.
            sequence_length: int T, pads to that length; None pads to the longest text.

        Raises:
            ValueError: a text holds no token, or more than `maximum_length` or `sequence_length`.
        """
        texts = check_texts("MaskedLMPreprocessor", texts)
        rows = list(number_errors("Text", texts, self.ids))
        longest = max(map(len, rows), default=0)
        if sequence_length is not None and longest > sequence_length:
            raise ValueError(
                f"A text has {longest} tokens, more than sequence_length={sequence_length}."
            )
        token_ids = np.full((len(rows), sequence_length or longest), self.padding_id, "int32")
        for row, ids in zip(token_ids, rows, strict=True):
            row[: len(ids)] = ids
        return self.as_inputs(token_ids)

    @property
    def vocabulary_size(self):
        """int, how many ids the model knows; None where it may have room for more."""
        return len(self.tokenizer)

    def as_inputs(self, ids):
        """What the model takes, of ids (B, T)."""
        return ids

    def encode_plain(self, text):
        """int32 ids (T,) of a text of any length."""
        return self.tokenizer.encode([text])[0]

    def ids(self, text):
        """int32 ids (T,) of one text, as the model takes them."""
        ids = self.encode_plain(text)
        if not len(ids):
            raise ValueError(f"{text!r} holds no token.")
        return self._check_length(text, ids)

    def _check_length(self, text, ids):
        if len(ids) > self.maximum_length:
            raise ValueError(
                f"The text has {len(ids)} tokens, over this model's limit of "
                f"{self.maximum_length}: {text[:40]!r}... Give a part of it."
            )
        return ids

    def candidates(self, ids, logits, top=5):
        """The likeliest tokens of every `[MASK]`.

        Args:
            ids: int32 (B, T), what the model was given.
            logits: float (B, T, tokens), what it gave.
            top: int, how many tokens of each.

        Returns:
            For each text a list with an entry for each `[MASK]` in it: a list of dicts, the
            likeliest first, with `"token"`, see `name_tokens`, and its `"probability"`. Padding,
            unknown and the like are no candidates.
        """
        top = check_whole_number("candidates", "top", top)
        ids, logits = np.asarray(ids), np.array(logits, "float64")
        logits[..., self._list_impossible(logits.shape[-1])] = -np.inf
        masked = ids == self.tokenizer.mask_token_id
        return [
            [self._rank(row, top) for row in rows[places]]
            for rows, places in zip(logits, masked, strict=True)
        ]

    def _list_impossible(self, count):
        """The ids below `count` that are no candidates."""
        return [*range(len(SPECIAL)), self.tokenizer.mask_token_id]

    def _rank(self, logits, top):
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = [int(i) for i in np.argsort(-shares, kind="stable")[:top] if shares[i] > 0]
        names = self.name_tokens(best)
        return [
            {"token": name, "probability": float(shares[i])}
            for name, i in zip(names, best, strict=True)
        ]

    def name_tokens(self, ids):
        """What `ids` (T,) stand for, to be read: a list of str.

        Of subwords the space before a word is left out, and what goes on in a word begins with
        `##`, as BERT writes it. Characters stay as they are.
        """
        pieces = self.tokenizer.pieces(ids)
        if isinstance(self.tokenizer, Characters):
            return pieces
        special = {*range(len(SPECIAL)), self.tokenizer.mask_token_id}
        return [
            piece
            if i in special
            else piece.removeprefix("▁") or " "
            if piece.startswith("▁")
            else f"##{piece}"
            for i, piece in zip(np.asarray(ids).tolist(), pieces, strict=True)
        ]

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        kind, file = self._kind
        return {
            "kind": "masked_language_model",
            "tokens": {"kind": kind, "file": file},
            "maximum_length": self.maximum_length,
            "mask_token": MASK_TOKEN,
            "mask_token_id": self.tokenizer.mask_token_id,
            "padding_id": PADDING_ID,
            "unknown_id": UNKNOWN_ID,
        }

    @property
    def _kind(self):
        """Which tokenizer it is, and the file for it."""
        found = ((k, suffix) for k, (c, suffix) in TOKENIZERS.items() if type(self.tokenizer) is c)
        kind, suffix = next(found)
        return kind, f"tokens{suffix}"

    def save(self, folder):
        """Writes the vocabulary into `folder`, and its config into `manifest.json` there.

        Other entries of the manifest stay.
        """
        save_preprocessing(folder, self.config(), {self._kind[1]: self.tokenizer})

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, "masked_language_model")
        tokens = config.object("tokens")
        kind, _ = TOKENIZERS[tokens.one_of("kind", TOKENIZERS)]
        return cls(kind.load(tokens.file("file")), config.whole("maximum_length", most=MOST_TOKENS))
