"""`TextPreprocessor`: texts to the inputs of a classifier, and its logits to labels."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, pad_rows
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import check_texts
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary, split_words
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors

LABELS = "labels.txt"
LENGTH = 512  # words that are read, unless another number is asked for


@dataclasses.dataclass(frozen=True)
class TextPreprocessor(TokenizerOwner):
    """Turns texts into the inputs of `ka.models.text_classifier`, in NumPy.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a model that began as a
            checkpoint.
        labels: `Labels`, or their names.
        maximum_length: int, the tokens of a text that the model sees. Of a longer text these are
            the first. None for the tokenizer's own limit, or 512 words.

    Calling it on a list of texts gives the token ids int32 (B, T), with padding after the end of a
    text, or a dict with `"segment_ids"`, too, where a checkpoint's model reads them.

    ```python
    import keras_attention as ka

    train = [ka.data.Text("A joy, a real joy", "good"), ka.data.Text("real bore", "bad")]
    preprocessor = ka.data.TextPreprocessor.build(train, lowercase=True)
    assert preprocessor.tokenizer.entries == ("<pad>", "<unk>", "a", "joy", "real", ",", "bore")
    assert preprocessor(["A joy", "what a real joy"]).tolist() == [[2, 3, 0, 0], [1, 2, 4, 3]]
    assert preprocessor.names([[2.0, 1.0], [0.0, 3.0]]) == ["bad", "good"]

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "film", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.TextPreprocessor(tokenizer, ["bad", "good"])
    inputs = preprocessor(["Good films", "good"])
    assert inputs["token_ids"].tolist() == [[2, 4, 5, 6, 3], [2, 4, 3, 0, 0]]
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    labels: Labels
    maximum_length: int | None = None
    kind = "classifier"

    def __post_init__(self):
        self.check_labels()
        self.check_padding()
        length = self.maximum_length
        if length is None:
            length = LENGTH if self.reads_words else self.tokenizer.max_length
            object.__setattr__(self, "maximum_length", length)
        if length is not None:
            check_whole_number("TextPreprocessor", "maximum_length", length, most=MOST_TOKENS)
        if not self.reads_words and self.tokenizer.max_length != length:
            tokenizer = dataclasses.replace(self.tokenizer, max_length=length)
            object.__setattr__(self, "tokenizer", tokenizer)

    @classmethod
    def build(
        cls,
        train,
        labels=None,
        *,
        min_count=1,
        max_size=None,
        lowercase=False,
        maximum_length=LENGTH,
        pattern=None,
    ):
        """Return one with the words of `train` as its vocabulary.

        Args:
            train: list of `Text`: the training part, and nothing of the others.
            labels: names of the labels, such as `data.labels`; None for those in `train`.
            min_count, max_size, lowercase: of the vocabulary, as in `Vocabulary.build`.
            maximum_length: int.
            pattern: str, or None, as in `Vocabulary`.
        """
        if labels is None:
            labels = sorted({label for _, label in train})
        seen = (word for text, _ in train for word in split_words(text, pattern)[:maximum_length])
        words = Vocabulary.build(
            seen, min_count=min_count, max_size=max_size, lowercase=lowercase, pattern=pattern
        )
        return cls(words, Labels(labels), maximum_length)

    def __call__(self, texts, sequence_length=None):
        """Return the model's inputs for a batch of texts.

        Args:
            texts: list of str.
            sequence_length: int T, pads to that length, and cuts what is longer; None pads to the
                longest text.
        """
        texts = check_texts("TextPreprocessor", texts)
        rows = list(number_errors("Text", texts, lambda text: self.ids(text, sequence_length)))
        return self.as_inputs(pad_rows(rows, self.padding_id, sequence_length))

    def columns(self, texts):
        """Return `Columns` of a list of `Text` or `MultiLabelText`, for `ka.data.batches`.

        Labels are int32 (B,), or for texts with several zeros and ones float32 (B, L).
        """
        names = [labels for _, labels in texts]
        single = isinstance(names[0], str)
        labels = self.labels.ids(names) if single else self.labels.encode_sets(names)
        rows = list(number_errors("Text", [text for text, _ in texts], self.ids))
        return Columns(self.as_columns(rows), labels, lengths=list(map(len, rows)))

    def split(self, text):
        """Return the tokens of a text that the model sees, as str.

        A ValueError if there is none.
        """
        return self.tokenizer.split(text, self.maximum_length)

    def is_cut(self, text):
        """Return whether the model sees only the beginning of a text."""
        return self.maximum_length is not None and self.tokenizer.count(text) > self.maximum_length

    def ids(self, text, most=None):
        """Token ids int32 (T,) of one text, at most so many."""
        limits = [n for n in (most, self.maximum_length) if n is not None]
        return self.tokenizer.encode_text(text, min(limits, default=None))

    def names(self, logits):
        """Return the label that each row of logits (B, num_classes) gives, as a list of str."""
        return [self.labels.names[i] for i in np.argmax(np.asarray(logits), axis=-1)]

    def config(self):
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        config = {**self.describe_tokenizer(), "labels": LABELS}
        if self.reads_words:
            longer = "the first maximum_length words"
            config |= {"maximum_length": self.maximum_length, "longer_texts": longer}
        return config

    def parts(self):
        return {LABELS: self.labels, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config, tokenizer = cls.load_tokenizer(folder)
        words = isinstance(tokenizer, Vocabulary)
        length = config.whole("maximum_length", most=MOST_TOKENS) if words else None
        return cls(tokenizer, Labels.load(config.file("labels")), length)
