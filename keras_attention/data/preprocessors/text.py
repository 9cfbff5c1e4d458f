"""`TextPreprocessor`: converts strings to the inputs of a classifier, and its logits to labels."""

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
LENGTH = 512  # default limit, in words


class TextReader(TokenizerOwner):
    """Base class of preprocessors of whole texts.

    Subclasses are dataclasses with the fields `tokenizer` and `maximum_length`.
    """

    maximum_length = None

    def set_length(self):
        """Check the attribute `maximum_length`, or set it if it is None."""
        self.check_padding()
        length = self.maximum_length
        if length is None:
            length = LENGTH if self.reads_words else self.tokenizer.max_length
            object.__setattr__(self, "maximum_length", length)
        if length is not None:
            check_whole_number(type(self).__name__, "maximum_length", length, most=MOST_TOKENS)
        if not self.reads_words and self.tokenizer.max_length != length:
            tokenizer = dataclasses.replace(self.tokenizer, max_length=length)
            object.__setattr__(self, "tokenizer", tokenizer)

    def __call__(self, texts, sequence_length=None):
        """Convert a list of strings to model inputs.

        Rows are padded or cut to `sequence_length`, or padded to the longest if it is None.
        """
        texts = check_texts(type(self).__name__, texts)
        rows = list(number_errors("Text", texts, lambda text: self.ids(text, sequence_length)))
        return self.as_inputs(pad_rows(rows, self.padding_id, sequence_length))

    def split(self, text):
        """Return the tokens of `text` that the model reads, a list of str.

        Raise a ValueError if the string has no tokens.
        """
        return self.tokenizer.split(text, self.maximum_length)

    def is_cut(self, text):
        """Return whether `text` has more tokens than the model reads."""
        return self.maximum_length is not None and self.tokenizer.count(text) > self.maximum_length

    def ids(self, text, most=None):
        """Return the int32 ids (T,) of `text`, cut to `most` tokens and to the model's limit."""
        limits = [n for n in (most, self.maximum_length) if n is not None]
        return self.tokenizer.encode_text(text, min(limits, default=None))

    def config(self):
        if not self.reads_words:
            return super().config()
        longer = "the first maximum_length words"
        return super().config() | {"maximum_length": self.maximum_length, "longer_texts": longer}

    @classmethod
    def load_reader(cls, folder):
        """Load the files that `save` wrote to `folder`.

        Return a tuple of three: the settings as `Fields`, the tokenizer, and `maximum_length`.
        """
        config, tokenizer = cls.load_tokenizer(folder)
        words = isinstance(tokenizer, Vocabulary)
        length = config.whole("maximum_length", most=MOST_TOKENS) if words else None
        return config, tokenizer, length


def build_vocabulary(texts, maximum_length=LENGTH, pattern=None, **options):
    """Collect a `Vocabulary` from the first `maximum_length` words of each str in `texts`.

    `pattern` and `options` are arguments of `Vocabulary.build`.
    """
    words = (word for text in texts for word in split_words(text, pattern)[:maximum_length])
    return Vocabulary.build(words, **options, pattern=pattern)


@dataclasses.dataclass(frozen=True)
class TextPreprocessor(TextReader):
    """Converts strings to the inputs of `ka.models.text_classifier`, in NumPy.

    Call the object on a list of strings to get the token ids, int32 (B, T), padded at the end. If
    the model reads segment ids, the result is a dict with `"token_ids"` and `"segment_ids"`.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a checkpoint's model.
        labels: `Labels`, or the names of the classes.
        maximum_length: int, the number of tokens that the model reads from the start of a string.
            The rest is cut off. None uses the limit of a `PretrainedTokenizer`, or 512 words for a
            `Vocabulary`.

    ```python
    import keras_attention as ka

    train = [ka.data.Text("A joy, a real joy", "good"), ka.data.Text("real bore", "bad")]
    preprocessor = ka.data.TextPreprocessor.build(train, lowercase=True)
    assert preprocessor.tokenizer.entries == ("<pad>", "<unk>", "a", "joy", "real", ",", "bore")
    assert preprocessor(["A joy", "what a real joy"]).tolist() == [[2, 3, 0, 0], [1, 2, 4, 3]]
    assert preprocessor.names([[2.0, 1.0], [0.0, 3.0]]) == ["bad", "good"]
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    labels: Labels
    maximum_length: int | None = None
    kind = "classifier"

    def __post_init__(self):
        object.__setattr__(self, "labels", Labels.of(self.labels))
        self.set_length()

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
        """Make a preprocessor whose vocabulary is collected from training examples.

        Args:
            train: list of `Text`, only the training split.
            labels: the names of the classes, such as `data.labels`. None uses the labels in
                `train`.
            min_count: int. Words that occur less often are treated as unknown.
            max_size: int, the maximum number of word ids, including padding. None for no limit.
            lowercase: bool, whether to ignore case.
            maximum_length: int, the number of words that the model reads from the start of a
                string.
            pattern: str, a regular expression that matches the words in a string. None uses the
                rule of `ka.data.split_words`.
        """
        if labels is None:
            labels = sorted({label for _, label in train})
        options = {"min_count": min_count, "max_size": max_size, "lowercase": lowercase}
        texts = (text for text, _ in train)
        vocabulary = build_vocabulary(texts, maximum_length, pattern, **options)
        return cls(vocabulary, labels, maximum_length)

    def columns(self, texts):
        """Convert `texts`, `Text` or `MultiLabelText`, to `Columns` for `ka.data.batches`.

        Labels are class ids, int32 (B,). For `MultiLabelText` they are float32 (B, number of
        labels), 1 for each label that applies and 0 elsewhere.
        """
        names = [labels for _, labels in texts]
        single = isinstance(names[0], str)
        labels = self.labels.ids(names) if single else self.labels.encode_sets(names)
        rows = list(number_errors("Text", [text for text, _ in texts], self.ids))
        return Columns(self.as_columns(rows), labels, lengths=list(map(len, rows)))

    def names(self, logits):
        """Return the most probable class of each example, a list of str.

        `logits` are (B, classes).
        """
        return [self.labels.names[i] for i in np.argmax(np.asarray(logits), axis=-1)]

    def config(self):
        return super().config() | {"labels": LABELS}

    def parts(self):
        return {LABELS: self.labels, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
        config, tokenizer, length = cls.load_reader(folder)
        return cls(tokenizer, Labels.load(config.file("labels")), length)
