"""`TextPairPreprocessor`: converts texts to the inputs of a model that returns their vectors."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns
from keras_attention.data.preprocessors.text import LENGTH, TextReader, build_vocabulary
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.vocabulary import Vocabulary
from keras_attention.files.io import number_errors

ROLES = ("text", "match", "negative")  # prefixes of the inputs of a model that is trained on pairs


@dataclasses.dataclass(frozen=True)
class TextPairPreprocessor(TextReader):
    """Converts strings to the inputs of `ka.models.text_encoder`, in NumPy.

    Call the object on a list of strings to get the token ids, int32 (B, T), padded at the end. If
    the model reads segment ids, the result is a dict with `"token_ids"` and `"segment_ids"`.
    `ka.data.batches` makes batches of `MatchingTexts`. The names of the inputs then begin with
    `text_` or `match_`, such as `"text_token_ids"`. The labels are the numbers of the texts that
    `ka.training.InfoNCE` reads.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a checkpoint's model.
        maximum_length: int, the number of tokens that the model reads from the start of a string.
            The rest is cut off. None uses the limit of a `PretrainedTokenizer`, or 512 words for a
            `Vocabulary`.

    ```python
    import keras_attention as ka

    pairs = [ka.data.MatchingTexts("A joy", "what a joy"), ka.data.MatchingTexts("sad", "tears")]
    preprocessor = ka.data.TextPairPreprocessor.build(pairs, lowercase=True)
    assert preprocessor(["a joy", "tears"]).tolist() == [[2, 3], [5, 0]]
    ((inputs, numbers),) = ka.data.batches(pairs, preprocessor)
    assert list(inputs) == ["text_token_ids", "match_token_ids"]
    assert numbers.numpy().tolist() == [[0, 2], [1, 3]]
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    maximum_length: int | None = None
    kind = "embedder"

    def __post_init__(self):
        self.set_length()

    @classmethod
    def build(cls, train, *, min_count=1, max_size=None, lowercase=False, maximum_length=LENGTH):
        """Make a preprocessor whose vocabulary is collected from training examples.

        Args:
            train: list of `MatchingTexts`, only the training split.
            min_count: int. Words that occur less often are treated as unknown.
            max_size: int, the maximum number of word ids, including padding. None for no limit.
            lowercase: bool, whether to ignore case.
            maximum_length: int, the number of words that the model reads from the start of a
                string.
        """
        options = {"min_count": min_count, "max_size": max_size, "lowercase": lowercase}
        return cls(build_vocabulary(list_texts(train), maximum_length, **options), maximum_length)

    def columns(self, pairs, negatives=None):
        """Convert a list of `MatchingTexts` to `Columns` for `ka.data.batches`.

        The labels are int32 (B, 2), or (B, 3) with hard negatives: the number of each text. Equal
        texts have equal numbers, and a missing hard negative is -1.

        Args:
            pairs: list of `MatchingTexts`.
            negatives: bool, whether to include hard negatives. None includes them if there are any.
        """
        if negatives is None:
            negatives = has_negatives(pairs)
        roles = ROLES if negatives else ROLES[:2]
        numbers, rows, inputs = {}, {}, {}
        labels = np.full((len(pairs), len(roles)), -1, "int32")
        for k, role in enumerate(roles):
            for i, one in enumerate(pairs):
                if one[k] is not None:
                    labels[i, k] = numbers.setdefault(one[k], len(numbers))
            # A missing text is replaced by another one, because an input cannot be empty.
            texts = [one.match if one[k] is None else one[k] for one in pairs]
            rows[role] = list(number_errors("Text", texts, self.ids))
            columns = self.as_columns(rows[role])
            columns = columns if isinstance(columns, dict) else {"token_ids": columns}
            inputs |= {f"{role}_{name}": column for name, column in columns.items()}
        lengths = [sum(map(len, of_pair)) for of_pair in zip(*rows.values(), strict=True)]
        return Columns(inputs, labels, lengths=lengths)

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
        _, tokenizer, length = cls.load_reader(folder)
        return cls(tokenizer, length)


def list_texts(pairs):
    """Return a list of all texts in `pairs`, a list of `MatchingTexts`."""
    return [text for one in pairs for text in one if text is not None]


def has_negatives(pairs):
    """Return whether any of `pairs`, a list of `MatchingTexts`, has a hard negative."""
    return any(one.negative is not None for one in pairs)
