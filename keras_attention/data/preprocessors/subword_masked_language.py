"""`SubwordMaskedLMPreprocessor`: texts with a `[MASK]` to the inputs of a pretrained encoder."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.preprocessors.masked_language import MaskedLMPreprocessor
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer, TokenizerOwner
from keras_attention.data.tokenizers.subwords import MASK_TOKEN
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.manifest import read_preprocessing


@dataclasses.dataclass(frozen=True)
class SubwordMaskedLMPreprocessor(TokenizerOwner, MaskedLMPreprocessor):
    """Like `MaskedLMPreprocessor`, by the tokenizer of a checkpoint.

    Args:
        tokenizer: `PretrainedTokenizer` with a mask, such as BERT's `[MASK]` or RoBERTa's `<mask>`.
        maximum_length: int, the most tokens of a text, special ones included.

    Calling it on a list of texts gives token ids int32 (B, T), or a dict with `"segment_ids"`, too.
    `[MASK]` in a text is the tokenizer's own mask, however that is spelt.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.SubwordMaskedLMPreprocessor(tokenizer, maximum_length=8)
    inputs = preprocessor(["The [MASK]"])
    assert inputs["token_ids"].tolist() == [[2, 5, 4, 3]]
    logits = np.eye(7)[[[0, 0, 6, 0]]]
    ((mask,),) = preprocessor.candidates(inputs, logits, top=1)
    assert mask[0]["token"] == "cat"
    ```
    """

    tokenizer: PretrainedTokenizer
    kind = "subword_masked_language_model"

    def __post_init__(self):
        owner = type(self).__name__
        if self.tokenizer.mask_token_id is None:
            raise ValueError(f"{owner}: {self.tokenizer!r} has no [MASK] or <mask>.")
        if self.tokenizer.padding_id is None:
            raise ValueError(f"{owner}: {self.tokenizer!r} has no padding, and rows differ.")
        check_whole_number(owner, "maximum_length", self.maximum_length, most=MOST_TOKENS)

    @property
    def padding_id(self):
        """int, what fills up the shorter texts of a batch."""
        return self.tokenizer.padding_id

    @property
    def vocabulary_size(self):
        """None: a checkpoint's model may have room for more ids than its tokenizer gives."""
        return None

    @property
    def mask_token(self):
        """str, how the tokenizer spells its mask."""
        return self.tokenizer.pieces([self.tokenizer.mask_token_id])[0]

    def as_inputs(self, ids):
        """What the model takes, of ids (B, T): with `"segment_ids"`, all 0, where it reads them."""
        return {"token_ids": ids, "segment_ids": ids * 0} if self.tokenizer.has_segments else ids

    def encode_plain(self, text):
        """int32 ids (T,) of a text of any length, without special tokens around it."""
        text = text.replace(MASK_TOKEN, self.mask_token)
        return np.array(self.tokenizer.encode_plain(text), "int32")

    def ids(self, text):
        """int32 ids (T,) of one text, special tokens included."""
        before, after = self.tokenizer.around
        ids = np.array([*before, *self.encode_plain(text), *after], "int32")
        return self._check_length(text, ids)

    def candidates(self, ids, logits, top=5):
        """As there; `ids` may be the dict of the model's inputs."""
        return super().candidates(ids["token_ids"] if isinstance(ids, dict) else ids, logits, top)

    def _list_impossible(self, count):
        """Special tokens, and ids behind the tokenizer's last."""
        return [*self.tokenizer.special_ids, *range(len(self.tokenizer), count)]

    def name_tokens(self, ids):
        """The pieces that `ids` (T,) stand for, as the tokenizer writes them: a list of str."""
        return self.tokenizer.pieces(ids)

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {
            "kind": self.kind,
            "tokenizer": self.tokenizer.config(),
            "maximum_length": self.maximum_length,
            "mask_token": self.mask_token,
            "mask_token_id": self.tokenizer.mask_token_id,
        }

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind)
        tokenizer = PretrainedTokenizer.load(folder, config.object("tokenizer"))
        return cls(tokenizer, config.whole("maximum_length", most=MOST_TOKENS))
