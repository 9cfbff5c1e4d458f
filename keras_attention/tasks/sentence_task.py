"""`SentenceTask`: the base class of tasks whose inputs are sentences of tokens."""

from keras_attention import data
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.tasks.length_limit import LengthLimit
from keras_attention.tasks.runners import check_labels, check_spelling
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # numbers of tokens for which the attention map is easy to read


class SentenceTask(Task):
    """Base class of tasks that make a prediction for each token of a sentence, such as tagging.

    Sentences with more than `maximum_length` tokens are skipped in training and scoring, and a
    message reports their number. `predict` raises a ValueError for them.
    """

    example = "The cat sat"

    def __init__(self, model, preprocessor, *, maximum_length=512, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.maximum_length = check_whole_number(
            type(self).__name__, "maximum_length", maximum_length, most=MOST_TOKENS
        )

    @classmethod
    def read_settings(cls, fields):
        fields.texts("labels")
        return {"maximum_length": fields.whole("maximum_length", most=MOST_TOKENS)}

    @property
    def settings(self):
        labels = list(self.preprocessor.labels.names)
        return {"labels": labels, "maximum_length": self.maximum_length}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TaggerPreprocessor.load(folder)

    @classmethod
    def count_examples(cls, data_set):
        counts = {}
        for part, sentences in data_set.parts.items():
            if sentences:
                counts[f"{part} sentences"] = len(sentences)
                counts[f"{part} tokens"] = sum(len(sentence.tokens) for sentence in sentences)
        return counts

    @property
    def limit(self):
        tokens, pieces = self.maximum_length, self.preprocessor.maximum_length

        def is_long(example, training):
            if len(example.tokens) > tokens:
                return True
            return pieces is not None and self.preprocessor.count_pieces(example.tokens) > pieces

        most = f"{tokens} tokens" + ("" if pieces is None else f" or {pieces} pieces of words")
        return LengthLimit("sentences", most, is_long)

    def find_example(self, data_set):
        """Return a sentence of medium length, a str, to show in the model card.

        `data_set` is the `DataSet` that the task was trained on.
        """
        sentences = data_set.test or data_set.dev or data_set.train
        return " ".join(choose_pictured(sentences)) if sentences else self.example

    def find_pictured(self, data_set):
        return choose_pictured(data_set.test or data_set.dev)

    def check_words(self, path, inspection, labels=None):
        """Raise a ValueError if a model file does not match the vocabularies in its folder.

        Args:
            path: pathlib.Path of the model file.
            inspection: the `Inspection` of this file, which contains its input and output shapes.
            labels: int, the expected number of outputs. None skips this check.
        """
        check_spelling(path, inspection, self.preprocessor, labels)
        check_labels(path.parent, self.manifest, self.preprocessor.labels)

    def check_inputs(self, inputs):
        self.split_sentences(inputs)

    def split_sentences(self, inputs):
        """Return a list with the tokens of each sentence in `inputs`.

        A sentence is a str, which is split, or a list of tokens. Raise a ValueError for a sentence
        that is empty or too long for the model.
        """
        check_many(inputs, "text", of="str")
        return list(number_errors("Text", inputs, self._split))

    def _split(self, text):
        tokens = split_tokens(text, self.maximum_length, self.preprocessor.pattern)
        if self.preprocessor.maximum_length is not None:
            self.preprocessor.encode(tokens)  # a ValueError if there are too many pieces
        return tokens


def build_preprocessor(sentences, labels, options):
    """Build a `TaggerPreprocessor`, with vocabularies collected from training sentences.

    `sentences` is a list of `ka.data.Sentence`, `labels` are the names of the tags, and `options`
    is a `SentenceData` with hyperparameters such as `min_count`.
    """
    return data.TaggerPreprocessor.build(
        sentences,
        labels,
        min_count=options.min_count,
        lowercase=options.lowercase,
        characters=options.characters,
        word_length=options.word_length,
    )


def size_characters(preprocessor):
    """Return the arguments of `ka.models.Characters` (a layer) that fit a preprocessor, a dict.

    Return None if the preprocessor does not use characters.
    """
    characters = preprocessor.characters
    if not characters:
        return None
    return {"vocabulary_size": len(characters), "word_length": preprocessor.word_length}


def split_tokens(text, maximum_length, pattern=None):
    """Split a str into tokens, or accept a list of tokens, and check the tokens.

    Args:
        text: str or list of str.
        maximum_length: int, the maximum number of tokens.
        pattern: regular expression that splits a str into words. None uses the default.

    Returns:
        A list of str.

    Raises:
        ValueError: a token is invalid, or the number of tokens is 0 or more than `maximum_length`.
    """
    tokens = data.split_words(text, pattern) if isinstance(text, str) else list(text)
    if not tokens:
        raise ValueError(f"{text!r} has no word: expected one or more.")
    for token in tokens:
        if not isinstance(token, str) or not token.strip():
            raise ValueError(f"{token!r:.40} is not a word: expected a str that is not blank.")
    if len(tokens) > maximum_length:
        raise ValueError(
            f"The text has {len(tokens)} tokens, over this model's limit of {maximum_length}: "
            f"{' '.join(tokens)[:40]!r}... Split it into sentences."
        )
    return tokens


def choose_pictured(sentences):
    """Choose the tokens of a sentence whose attention map is easy to read.

    `sentences` is a list of `ka.data.Sentence`. Return the first sentence whose length is in
    `PICTURED`, or else the first tokens of the first sentence.
    """
    fitting = [s for s in sentences if len(s.tokens) in PICTURED]
    return (fitting or sentences)[0].tokens[: max(PICTURED)]
