"""`MaskedLMPreprocessor`: converts text with `[MASK]` to model inputs, and logits to tokens."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import pad_rows
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.tokenizers.entries import Characters
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import MASK_TOKEN, Subwords, check_texts
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors


@dataclasses.dataclass(frozen=True)
class MaskedLMPreprocessor(TokenizerOwner):
    """Converts strings to the inputs of `ka.models.masked_language_model`, in NumPy.

    Call the object on a list of strings to get the token ids, int32 (B, T), padded at the end. If
    the model reads segment ids, the result is a dict with `"token_ids"` and `"segment_ids"`.
    `[MASK]` in a string is converted to the tokenizer's own mask token.

    Args:
        tokenizer: `Characters` or `Subwords` built with `mask_token=True`, or a
            `PretrainedTokenizer` with a mask token, such as BERT's `[MASK]` or RoBERTa's `<mask>`.
        maximum_length: int, the maximum number of tokens in a string, including special tokens. Use
            the same value as in training.

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

    tokenizer: Characters | Subwords | PretrainedTokenizer
    maximum_length: int = 512
    kind = "masked_language_model"

    def __post_init__(self):
        if self.tokenizer.mask_token_id is None:
            mend = "" if self.is_pretrained else ": build it with mask_token=True"
            raise ValueError(f"MaskedLMPreprocessor: {self.tokenizer!r} has no [MASK]{mend}.")
        self.check_padding()
        name, length = "MaskedLMPreprocessor", self.maximum_length
        check_whole_number(name, "maximum_length", length, most=MOST_TOKENS)

    def __call__(self, texts, sequence_length=None):
        """Convert a list of strings to model inputs, padded to `sequence_length` tokens.

        If `sequence_length` is None, the longest string determines the length. Raise a ValueError
        if a string is empty or has more than `maximum_length` or `sequence_length` tokens.
        """
        texts = check_texts("MaskedLMPreprocessor", texts)
        rows = list(number_errors("Text", texts, self.ids))
        return self.as_inputs(pad_rows(rows, self.padding_id, sequence_length))

    def encode_plain(self, text):
        """Return the int32 ids (T,) of `text`, a str of any length, without special tokens."""
        text = text.replace(MASK_TOKEN, self.tokenizer.mask_token)
        return np.array(self.tokenizer.encode_plain(text), "int32")

    def ids(self, text):
        """Return the int32 ids (T,) of `text`, one str, with special tokens.

        Raise a ValueError if the string is empty or too long.
        """
        before, after = self.tokenizer.around
        ids = np.array([*before, *self.encode_plain(text), *after], "int32")
        if not len(ids):
            raise ValueError(f"{text!r} has no token: expected one or more.")
        if len(ids) > self.maximum_length:
            raise ValueError(
                f"The text has {len(ids)} tokens, over this model's limit of "
                f"{self.maximum_length}: {text[:40]!r}... Give a part of it."
            )
        return ids

    def candidates(self, ids, logits, top=5):
        """Return the most probable tokens for every `[MASK]`.

        Args:
            ids: the model's inputs, int32 (B, T), or the dict with `"token_ids"`.
            logits: float (B, T, vocabulary size), the model's outputs.
            top: int, the number of candidates for each mask.

        Returns:
            A list with a list for each string, which has an entry for each mask in the string. The
            entry is a list of candidates, the most probable first. A candidate is a dict with the
            `"token"` in readable form and its `"probability"`. Special tokens are never candidates.
        """
        top = check_whole_number("candidates", "top", top)
        ids = np.asarray(ids["token_ids"] if isinstance(ids, dict) else ids)
        logits = self.rule_out_special(logits)
        masked = ids == self.tokenizer.mask_token_id
        return [
            [self._rank(row, top) for row in rows[is_mask]]
            for rows, is_mask in zip(logits, masked, strict=True)
        ]

    def rule_out_special(self, logits):
        """Return logits in float64, with -inf for special tokens and unused ids.

        `logits` are (B, T, vocabulary_size).
        """
        logits, size = np.array(logits, "float64"), len(self.tokenizer)
        logits[..., [*self.tokenizer.special_ids, *range(size, logits.shape[-1])]] = -np.inf
        return logits

    def _rank(self, logits, top):
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = [int(i) for i in np.argsort(-shares, kind="stable")[:top] if shares[i] > 0]
        names = zip(self.tokenizer.name_tokens(best), best, strict=True)
        return [{"token": name, "probability": float(shares[i])} for name, i in names]

    def config(self):
        return super().config() | {
            "maximum_length": self.maximum_length,
            "mask_token": self.tokenizer.mask_token,
            "mask_token_id": self.tokenizer.mask_token_id,
        }

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
        config, tokenizer = cls.load_tokenizer(folder)
        return cls(tokenizer, config.whole("maximum_length", most=MOST_TOKENS))
