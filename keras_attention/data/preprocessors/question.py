"""`QuestionPreprocessor`: questions and contexts to the inputs of a model, and spans to answers."""

import dataclasses

import numpy as np

from keras_attention.core import checks
from keras_attention.data.columns import Columns, Ragged, number_tokens
from keras_attention.data.preprocessors.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    cut_windows,
)
from keras_attention.data.preprocessors.tagger import CHARACTERS, MOST_CHARACTERS, WORDS, spell
from keras_attention.data.tokenizers.subwords import PADDING_ID
from keras_attention.data.tokenizers.vocabulary import Vocabulary, find_words, split_words
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.files.manifest import read_preprocessing, save_preprocessing
from keras_attention.files.word_pattern import OLD_PATTERN, check_pattern, make_portable

CLASS, SEPARATOR = "<cls>", "<sep>"  # no word is split off that reads so
CLASS_ID, SEPARATOR_ID = 2, 3
STEM = 4  # letters that words in another form share with it
LIMITS = ("maximum_length", "maximum_question", "maximum_answer", "stride")


@dataclasses.dataclass(frozen=True)
class QuestionPreprocessor:
    """Turns questions and contexts into the inputs of `ka.models.question_answerer`.

    A row is `<cls> question <sep> context`; a context that is too long becomes several rows, which
    overlap. Answers are characters of the context.

    Args:
        words: `Vocabulary`, which has `<cls>` and `<sep>` at the ids 2 and 3.
        characters: `Vocabulary` of characters, or None for a model that does not see the spelling.
        word_length: int C, characters of a word that the model sees. See `TaggerPreprocessor`.
        maximum_length: int, the tokens of a row at most.
        maximum_question: int, the words of a question that are read.
        maximum_answer: int, the words of an answer at most.
        stride: int, the tokens that a row has in common with the next one of a long context.
        pattern: str, a regular expression without capturing groups, whose matches are the words.
            None stands for that of `ka.data.split_words`.

    Example:

    ```python
    import keras_attention as ka

    context = "The dog barks at cats."
    asked = ka.data.Question("What barked at cats?", context, (ka.data.Answer("The dog", 0),))
    preprocessor = ka.data.QuestionPreprocessor.build([asked], characters=False)
    inputs = preprocessor([(asked.question, context)])
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]]
    assert inputs["exact_match"].tolist() == [[0, 0, 1, 2, 2, 0, 0, 0, 0, 1, 2, 2, 0]]
    ```
    """

    words: Vocabulary
    characters: Vocabulary | None = None
    word_length: int = 16
    maximum_length: int = 384
    maximum_question: int = 64
    maximum_answer: int = 30
    stride: int = 128
    pattern: str | None = dataclasses.field(default=None, repr=False)
    unit = "words"  # what it counts

    def __post_init__(self):
        if self.words.entries[CLASS_ID : SEPARATOR_ID + 1] != (CLASS, SEPARATOR):
            raise ValueError(
                f"The words of a QuestionPreprocessor have {CLASS} and {SEPARATOR} at the ids "
                f"{CLASS_ID} and {SEPARATOR_ID}: make it by QuestionPreprocessor.build."
            )
        checks.check_whole_number(
            "QuestionPreprocessor", "word_length", self.word_length, most=MOST_CHARACTERS
        )
        check_limits(self, special=2)
        object.__setattr__(self, "pattern", check_pattern("QuestionPreprocessor", self.pattern))

    @classmethod
    def build(
        cls,
        train,
        *,
        min_count=1,
        max_size=None,
        lowercase=True,
        characters=True,
        word_length=16,
        pattern=None,
        **limits,
    ):
        """The vocabularies of `train`.

        Args:
            train: list of `Question`: the training part, and nothing of the others.
            min_count, max_size, lowercase: of the words, as in `Vocabulary.build`. A context counts
                once, however many questions are about it.
            characters: bool, whether the model sees the spelling, too.
            word_length: int.
            pattern: str, or None, as in the constructor.
            limits: the lengths of the constructor.
        """
        texts = [*dict.fromkeys(q.context for q in train), *(q.question for q in train)]
        words = [word for text in texts for word in split_words(text, pattern)]
        known = Vocabulary.build(
            words, min_count=min_count, max_size=max_size, lowercase=lowercase
        ).entries
        vocabulary = Vocabulary((*known[:2], CLASS, SEPARATOR, *known[2:]), lowercase)
        spelling = Vocabulary.build(c for word in words for c in word) if characters else None
        return cls(vocabulary, spelling, word_length, pattern=pattern, **limits)

    @property
    def padding_id(self):
        """int, the id after the end of a row."""
        return PADDING_ID

    @property
    def vocabulary_size(self):
        """int, how many ids of words there are."""
        return len(self.words)

    def encode(self, question, context):
        """The `EncodedQuestion` of two texts; a ValueError where one holds no word."""
        asked = split_words(question, self.pattern)[: self.maximum_question]
        found = find_words(context, self.pattern)
        if not asked or not found:
            empty = question if not asked else context
            raise ValueError(f"{empty[:40]!r} holds no word.")
        words = [word for word, _ in found]
        front = (CLASS, *asked, SEPARATOR)
        head = np.array([CLASS_ID, *self.words.ids(asked), SEPARATOR_ID], "int32")
        matches = (
            np.array([0, *_match(asked, words), 0], "int32"),
            np.array(_match(words, asked), "int32"),
        )
        ids, windows = self.words.ids(words), []
        room = self.maximum_length - len(front)
        for first, count in cut_windows(len(words), room, self.stride):
            here = slice(first, first + count)
            inputs = {
                "token_ids": np.concatenate([head, ids[here]]),
                "segment_ids": np.repeat(np.int32([0, 1]), [len(front), count]),
                "exact_match": np.concatenate([matches[0], matches[1][here]]),
            }
            tokens = (*front, *words[here])
            windows.append(QuestionWindow(inputs, tokens, len(front), first, count))
        return EncodedQuestion(windows, np.array([span for _, span in found]))

    def __call__(self, pairs, sequence_length=None):
        """The model's inputs for all windows of pairs of a question and a context, in order.

        Args:
            pairs: list of (question, context), two str.
            sequence_length: int T, pads to that length; None pads to the longest.
        """
        encoded = number_errors("Question", pairs, lambda pair: self.encode(*pair))
        windows = [window for one in encoded for window in one.windows]
        return self.stack(windows, sequence_length)

    def stack(self, windows, sequence_length=None):
        """The model's inputs (B, T) for a list of `QuestionWindow`."""
        inputs = stack_windows(windows, PADDING_ID, sequence_length)
        if self.characters is not None:
            shape = (*inputs["token_ids"].shape, self.word_length)
            inputs["character_ids"] = np.zeros(shape, "int32")
            for row, window in zip(inputs["character_ids"], windows, strict=True):
                row[: len(window.tokens)] = self.spell(window.tokens)
        return inputs

    def columns(self, examples):
        """`Columns` of a list of (`QuestionWindow`, (first, last)), for `ka.data.batches`.

        The pair says at which places of the window its answer begins and ends, or -1 where that
        is not known. Labels are int32 (B, 2).
        """
        windows = [window for window, _ in examples]
        labels = np.array([places for _, places in examples], "int32")
        inputs = {
            name: Ragged(
                [window.inputs[name] for window in windows],
                self.padding_id if name == "token_ids" else 0,
            )
            for name in windows[0].inputs
        }
        if self.characters is not None:
            tokens, numbers = number_tokens([window.tokens for window in windows])
            inputs["character_ids"] = Ragged(numbers, 0, self.spell(tokens))
        return Columns(inputs, labels, lengths=[len(window.tokens) for window in windows])

    def spell(self, tokens):
        """Character ids (T, C) of tokens (T,); none of those that are no words."""
        letters = spell(tokens, self.characters, self.word_length)
        letters[[token in (CLASS, SEPARATOR) for token in tokens]] = 0
        return letters

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {
            "kind": "question_answerer",
            "words": WORDS,
            "characters": CHARACTERS if self.characters else None,
            "lowercase": self.words.lowercase,
            "word_length": self.word_length,
            "longer_words": "the first word_length - word_length // 2 characters and the last "
            "word_length // 2",
            "row": f"{CLASS} question {SEPARATOR} context",
            "exact_match": f"2 for a word that the other text has, whatever its case, 1 for one "
            f"of at least {STEM} characters of which the other text has the first {STEM}, else 0",
            **{name: getattr(self, name) for name in LIMITS},
            "padding_id": PADDING_ID,
            "unknown_id": 1,
            "class_id": CLASS_ID,
            "separator_id": SEPARATOR_ID,
            "split": make_portable(self.pattern),
        }

    def save(self, folder):
        """Writes the vocabularies into `folder`, and its config into `manifest.json` there.

        Other entries of the manifest stay.
        """
        parts = {WORDS: self.words, CHARACTERS: self.characters}
        save_preprocessing(folder, self.config(), {k: v for k, v in parts.items() if v is not None})

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, "question_answerer")
        characters = config.file("characters", default=None)
        return cls(
            Vocabulary.load(config.file("words"), config.flag("lowercase")),
            Vocabulary.load(characters) if characters else None,
            config.whole("word_length", most=MOST_CHARACTERS),
            pattern=config.pattern("split", default=OLD_PATTERN),
            **read_limits(config),
        )


def _match(words, others):
    """For each word 2 where it is among `others`, 1 where one begins alike, else 0."""
    others = {word.lower() for word in others}
    stems = {word[:STEM] for word in others if len(word) >= STEM}
    return [
        2 if word in others else int(len(word) >= STEM and word[:STEM] in stems)
        for word in (word.lower() for word in words)
    ]


def check_limits(preprocessor, special):
    """Refuses lengths that leave no room for a context."""
    owner = type(preprocessor).__name__
    for name in LIMITS:
        least = 0 if name == "stride" else 1
        checks.check_whole_number(
            owner, name, getattr(preprocessor, name), least=least, most=MOST_TOKENS
        )
    taken = preprocessor.maximum_question + special
    if preprocessor.maximum_length < 2 * taken:
        raise ValueError(
            f"{owner}: maximum_length={preprocessor.maximum_length} leaves no room for a context "
            f"beside {taken} tokens of a question: give at least {2 * taken}, or a smaller "
            "maximum_question."
        )


def read_limits(config):
    """The lengths that a manifest holds, a dict."""
    return {
        name: config.whole(name, most=MOST_TOKENS, least=0 if name == "stride" else 1)
        for name in LIMITS
    }


def stack_windows(windows, padding_id, sequence_length=None):
    """{name: int32 (B, T)} of a list of `QuestionWindow`; padding is `padding_id`, elsewhere 0."""
    longest = max((len(window.tokens) for window in windows), default=0)
    if sequence_length is not None and longest > sequence_length:
        raise ValueError(
            f"A question and its context have {longest} tokens, more than sequence_length="
            f"{sequence_length}: use a smaller maximum_length."
        )
    shape, found = (len(windows), sequence_length or longest), {}
    for name in windows[0].inputs if windows else ():
        found[name] = np.full(shape, padding_id if name == "token_ids" else 0, "int32")
        for row, window in zip(found[name], windows, strict=True):
            row[: len(window.tokens)] = window.inputs[name]
    return found
