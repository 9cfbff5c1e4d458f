"""`MaskedLMPreprocessor`: texts with `[MASK]` to the inputs of a model, and logits to tokens."""

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
    """Turns texts into the inputs of `ka.models.masked_language_model`, in NumPy.

    Args:
        tokenizer: `Characters` or `Subwords` with a `[MASK]`, built with `mask_token=True`; or a
            `PretrainedTokenizer` with a mask, such as BERT's `[MASK]` or RoBERTa's `<mask>`.
        maximum_length: int, the most tokens of a text, special ones included: as many as the model
            was trained on at once.

    Calling it on a list of texts gives the token ids int32 (B, T), with padding after the end of a
    text, or a dict with `"segment_ids"`, too. `[MASK]` in a text is the tokenizer's own mask,
    however that is spelt.

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
        check_whole_number(
            "MaskedLMPreprocessor", "maximum_length", self.maximum_length, most=MOST_TOKENS
        )

    def __call__(self, texts, sequence_length=None):
        """Return the model's inputs for a batch of texts.

        Args:
            texts: list of str.
            sequence_length: int T, pads to that length; None pads to the longest text.

        Raises:
            ValueError: a text holds no token, or more than `maximum_length` or `sequence_length`.
        """
        texts = check_texts("MaskedLMPreprocessor", texts)
        rows = list(number_errors("Text", texts, self.ids))
        return self.as_inputs(pad_rows(rows, self.padding_id, sequence_length))

    def encode_plain(self, text):
        """int32 ids (T,) of a text of any length, without special tokens around it."""
        text = text.replace(MASK_TOKEN, self.tokenizer.mask_token)
        return np.array(self.tokenizer.encode_plain(text), "int32")

    def ids(self, text):
        """int32 ids (T,) of one text, as the model takes them."""
        before, after = self.tokenizer.around
        ids = np.array([*before, *self.encode_plain(text), *after], "int32")
        if not len(ids):
            raise ValueError(f"{text!r} holds no token.")
        if len(ids) > self.maximum_length:
            raise ValueError(
                f"The text has {len(ids)} tokens, over this model's limit of "
                f"{self.maximum_length}: {text[:40]!r}... Give a part of it."
            )
        return ids

    def candidates(self, ids, logits, top=5):
        """Return the likeliest tokens of every `[MASK]`.

        Args:
            ids: what the model was given, int32 (B, T), or a dict with them.
            logits: float (B, T, tokens), what it gave.
            top: int, how many tokens of each.

        Returns:
            For each text a list with an entry for each `[MASK]` in it: a list of dicts, the
            likeliest first, with `"token"`, as it is to be read, and its `"probability"`. Padding,
            unknown and the like are no candidates.
        """
        top = check_whole_number("candidates", "top", top)
        ids = np.asarray(ids["token_ids"] if isinstance(ids, dict) else ids)
        logits, size = np.array(logits, "float64"), len(self.tokenizer)
        logits[..., [*self.tokenizer.special_ids, *range(size, logits.shape[-1])]] = -np.inf
        masked = ids == self.tokenizer.mask_token_id
        return [
            [self._rank(row, top) for row in rows[is_mask]]
            for rows, is_mask in zip(logits, masked, strict=True)
        ]

    def _rank(self, logits, top):
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = [int(i) for i in np.argsort(-shares, kind="stable")[:top] if shares[i] > 0]
        names = self.tokenizer.name_tokens(best)
        return [
            {"token": name, "probability": float(shares[i])}
            for name, i in zip(names, best, strict=True)
        ]

    def config(self):
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        return self.describe_tokenizer() | {
            "maximum_length": self.maximum_length,
            "mask_token": self.tokenizer.mask_token,
            "mask_token_id": self.tokenizer.mask_token_id,
        }

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config, tokenizer = cls.load_tokenizer(folder)
        return cls(tokenizer, config.whole("maximum_length", most=MOST_TOKENS))
