"""`SentenceTask`: what tasks share whose inputs are sentences, a word at a time."""

from functools import partial

from keras_attention import data
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.tasks.length_limit import LengthLimit
from keras_attention.tasks.runners import check_labels, check_spelling
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # tokens of a sentence whose picture is easy to read


class SentenceTask(Task):
    """A task of sentences of words, with labels for words.

    Longer sentences than `maximum_length` are neither trained on nor scored, and their number is
    printed. `predict` refuses them.

    Args:
        model, preprocessor: as those of the task.
        maximum_length: int, the tokens of a sentence at most.
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
        """Return a sentence of the data of a good length, which `predict` splits again."""
        sentences = data_set.test or data_set.dev or data_set.train
        return " ".join(choose_pictured(sentences)) if sentences else self.example

    def find_pictured(self, data_set):
        return choose_pictured(data_set.test or data_set.dev)

    def check_words(self, path, found, labels=None):
        """Refuses a file, of which this was `found`, of other vocabularies than those beside it."""
        check_spelling(path, found, self.preprocessor, labels)
        check_labels(path.parent, self.manifest, self.preprocessor.labels)

    def split_sentences(self, inputs):
        """Return lists of tokens, of a list of texts or of lists of tokens."""
        check_many(inputs, "text", of="texts")
        pattern = self.preprocessor.pattern
        split = partial(split_tokens, maximum_length=self.maximum_length, pattern=pattern)
        return list(number_errors("Text", inputs, split))


def build_preprocessor(sentences, labels, options):
    """Build the `TaggerPreprocessor` of a recipe, of sentences to train on."""
    return data.TaggerPreprocessor.build(
        sentences,
        labels,
        min_count=options.min_count,
        lowercase=options.lowercase,
        characters=options.characters,
        word_length=options.word_length,
    )


def size_characters(preprocessor):
    """Settings of `ka.models.Characters` for those of a preprocessor, or None."""
    characters = preprocessor.characters
    if not characters:
        return None
    return {"vocabulary_size": len(characters), "word_length": preprocessor.word_length}


def split_tokens(text, maximum_length, pattern=None):
    """Return the tokens of a text, or of a list of them; an error if there is none, or too many."""
    tokens = data.split_words(text, pattern) if isinstance(text, str) else list(text)
    if not tokens:
        raise ValueError(f"{text!r} holds no word.")
    for token in tokens:
        if not isinstance(token, str) or not token.strip():
            raise ValueError(f"{token!r:.40} is no word: expected strings with letters or signs.")
    if len(tokens) > maximum_length:
        raise ValueError(
            f"The text has {len(tokens)} tokens, over this model's limit of {maximum_length}: "
            f"{' '.join(tokens)[:40]!r}... Split it into sentences."
        )
    return tokens


def choose_pictured(sentences):
    """Return the tokens of the first sentence of a good length, or of the first, cut."""
    fitting = [s for s in sentences if len(s.tokens) in PICTURED]
    return (fitting or sentences)[0].tokens[: max(PICTURED)]
