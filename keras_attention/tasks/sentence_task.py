"""`SentenceTask`: what tasks share whose inputs are sentences, a word at a time."""

from functools import partial

from keras_attention import data
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.export import inspection
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.tasks.length_limit import LengthLimit
from keras_attention.tasks.runners import check_labels
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # tokens of a sentence whose picture is easy to read


class SentenceTask(LengthLimit, Task):
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
    def check_manifest(cls, fields):
        fields.texts("labels")
        fields.whole("maximum_length", most=MOST_TOKENS)

    @classmethod
    def read_settings(cls, manifest):
        return {"maximum_length": manifest["maximum_length"]}

    @property
    def settings(self):
        labels = list(self.preprocessor.labels.names)
        return {"labels": labels, "maximum_length": self.maximum_length}

    @classmethod
    def count_examples(cls, data_set):
        found = {}
        for part in ("train", "dev", "test"):
            if split := getattr(data_set, part):
                found[f"{part} sentences"] = len(split)
                found[f"{part} tokens"] = sum(len(sentence.tokens) for sentence in split)
        return found

    @property
    def length_limit(self):
        limit, pieces = f"{self.maximum_length} tokens", self.preprocessor.maximum_length
        return limit if pieces is None else f"{limit} or {pieces} pieces of words"

    def is_long(self, example, training=False):
        if len(example.tokens) > self.maximum_length:
            return True
        pieces = self.preprocessor.maximum_length
        return pieces is not None and self.preprocessor.count_pieces(example.tokens) > pieces

    def find_example(self, data_set):
        """The words of a sentence of the data of a good length, which `predict` splits again."""
        sentences = data_set.test or data_set.dev or data_set.train
        return " ".join(choose_pictured(sentences)) if sentences else self.example

    def check_inputs(self, path, run, labels=None):
        """Refuses a file that was made for other vocabularies than those beside it."""
        preprocessor = self.preprocessor
        characters = preprocessor.characters
        spelling = {} if characters is None else {"character_ids": len(characters)}
        lengths = {} if characters is None else {"character_ids": preprocessor.word_length}
        inspection.check_sizes(
            run.inspection,
            labels=labels,
            vocabularies={"token_ids": preprocessor.vocabulary_size, **spelling},
            lengths=lengths,
        )
        if (characters is not None) != ("character_ids" in run.shapes):
            sees = "spelling" if "character_ids" in run.shapes else "no spelling"
            raise ValueError(
                f"{path.parent / 'manifest.json'}: preprocessing.characters is not of {path.name} "
                f"beside it, which sees {sees}. Put the right files together."
            )
        check_labels(path.parent, self.manifest, preprocessor.labels)

    def split_sentences(self, inputs):
        """Lists of tokens, of a list of texts or of lists of tokens."""
        check_many(inputs, "text", of="texts")
        pattern = self.preprocessor.pattern
        split = partial(split_tokens, maximum_length=self.maximum_length, pattern=pattern)
        return list(number_errors("Text", inputs, split))


def build_preprocessor(sentences, labels, options):
    """The `TaggerPreprocessor` of sentences to train on, by the `SentenceData` of a recipe."""
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
    """The tokens of a text, or of a list of them; an error if there is none, or too many."""
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
    """The tokens of the first sentence of a good length, or of the first, cut."""
    fitting = [s for s in sentences if len(s.tokens) in PICTURED]
    return (fitting or sentences)[0].tokens[: max(PICTURED)]
