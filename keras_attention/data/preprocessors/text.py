"""`TextPreprocessor`: texts to the inputs of a classifier, and its logits to labels."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, Ragged
from keras_attention.data.tokenizers.subwords import PADDING_ID
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary, split_words
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.files.manifest import read_preprocessing, save_preprocessing
from keras_attention.files.word_pattern import OLD_PATTERN, check_pattern, make_portable

WORDS, LABELS = "words.txt", "labels.txt"


@dataclasses.dataclass(frozen=True)
class TextPreprocessor:
    """Turns texts into the inputs of `ka.models.text_classifier`, in NumPy alone.

    Args:
        words: `Vocabulary` of the words.
        labels: `Labels`, or their names.
        maximum_length: int, the words of a text that the model sees. Of a longer text these are
            the first.
        pattern: str, a regular expression without capturing groups, whose matches are the words.
            None stands for that of `ka.data.split_words`.

    Calling it on a list of texts gives the token ids int32 (B, T), 0 after the end of a text.

    Example:

    ```python
    import keras_attention as ka

    train = [ka.data.Text("A joy, a real joy", "good"), ka.data.Text("real bore", "bad")]
    preprocessor = ka.data.TextPreprocessor.build(train, lowercase=True)
    assert preprocessor.words.entries == ("<pad>", "<unk>", "a", "joy", "real", ",", "bore")
    assert preprocessor(["A joy", "what a real joy"]).tolist() == [[2, 3, 0, 0], [1, 2, 4, 3]]
    assert preprocessor.names([[2.0, 1.0], [0.0, 3.0]]) == ["bad", "good"]
    ```
    """

    words: Vocabulary
    labels: Labels
    maximum_length: int = 512
    pattern: str | None = dataclasses.field(default=None, repr=False)
    unit = "words"  # what it counts

    def __post_init__(self):
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))
        check_whole_number(
            "TextPreprocessor", "maximum_length", self.maximum_length, most=MOST_TOKENS
        )
        object.__setattr__(self, "pattern", check_pattern("TextPreprocessor", self.pattern))

    @classmethod
    def build(
        cls,
        train,
        labels=None,
        *,
        min_count=1,
        max_size=None,
        lowercase=False,
        maximum_length=512,
        pattern=None,
    ):
        """The vocabulary of `train`.

        Args:
            train: list of `Text`: the training part, and nothing of the others.
            labels: names of the labels, such as `data.labels`; None for those in `train`.
            min_count, max_size, lowercase: of the vocabulary, as in `Vocabulary.build`.
            maximum_length: int.
            pattern: str, or None, as in the constructor.
        """
        if labels is None:
            labels = sorted({label for _, label in train})
        seen = (word for text, _ in train for word in split_words(text, pattern)[:maximum_length])
        words = Vocabulary.build(seen, min_count=min_count, max_size=max_size, lowercase=lowercase)
        return cls(words, Labels(labels), maximum_length, pattern)

    @property
    def padding_id(self):
        """int, the id after the end of a text."""
        return PADDING_ID

    @property
    def vocabulary_size(self):
        """int, how many ids there are."""
        return len(self.words)

    def as_inputs(self, ids):
        """What the model takes, of ids (B, T)."""
        return ids

    def __call__(self, texts, sequence_length=None):
        """The model's inputs for a batch of texts.

        Args:
            texts: list of str.
            sequence_length: int T, pads to that length, and cuts what is longer; None pads to the
                longest text.
        """
        if isinstance(texts, str):
            raise ValueError(f"{texts[:40]!r} is one text: pass a list of texts.")
        rows = [ids[:sequence_length] for ids in number_errors("Text", texts, self.ids)]
        length = max(map(len, rows), default=0) if sequence_length is None else sequence_length
        token_ids = np.zeros((len(rows), length), "int32")
        for row, ids in zip(token_ids, rows, strict=True):
            row[: len(ids)] = ids
        return token_ids

    def as_columns(self, rows):
        """The inputs of a model as columns, of a list of ids (T,)."""
        return Ragged(rows, self.padding_id)

    def columns(self, texts):
        """`Columns` of a list of `Text` or `MultiLabelText`, for `ka.data.batches`.

        Labels are int32 (B,), or for texts with several zeros and ones float32 (B, L).
        """
        names = [labels for _, labels in texts]
        single = isinstance(names[0], str)
        labels = self.labels.ids(names) if single else self.labels.encode_sets(names)
        rows = list(number_errors("Text", [text for text, _ in texts], self.ids))
        return Columns(self.as_columns(rows), labels, lengths=list(map(len, rows)))

    def split(self, text):
        """The words of a text that the model sees, as str; a ValueError if there is none."""
        words = split_words(text, self.pattern)[: self.maximum_length]
        if not words:
            raise ValueError(f"{text!r} holds no word.")
        return words

    def is_cut(self, text):
        """Whether the model sees the beginning of a text alone."""
        return len(split_words(text, self.pattern)) > self.maximum_length

    def ids(self, text):
        """Token ids (T,) of one text."""
        return self.words.ids(self.split(text))

    def names(self, logits):
        """The label that each row of logits (B, num_classes) gives, as a list of str."""
        return [self.labels.names[i] for i in np.argmax(np.asarray(logits), axis=-1)]

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {
            "kind": "classifier",
            "words": WORDS,
            "labels": LABELS,
            "lowercase": self.words.lowercase,
            "maximum_length": self.maximum_length,
            "longer_texts": "the first maximum_length words",
            "padding_id": PADDING_ID,
            "unknown_id": 1,
            "split": make_portable(self.pattern),
        }

    def save(self, folder):
        """Writes the vocabulary into `folder`, and its config into `manifest.json` there.

        Other entries of the manifest stay.
        """
        save_preprocessing(folder, self.config(), {WORDS: self.words, LABELS: self.labels})

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, "classifier")
        return cls(
            Vocabulary.load(config.file("words"), config.flag("lowercase")),
            Labels.load(config.file("labels")),
            config.whole("maximum_length", most=MOST_TOKENS),
            config.pattern("split", default=OLD_PATTERN),
        )
