"""`QuestionPreprocessor`: converts questions and contexts to model inputs, and spans to answers."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, Ragged, pad_rows
from keras_attention.data.preprocessors.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    cut_windows,
)
from keras_attention.data.preprocessors.spelling import SpellingReader, load_spelling
from keras_attention.data.tokenizers.pretrained import PAIR, TEXT, PretrainedTokenizer
from keras_attention.data.tokenizers.vocabulary import Vocabulary, split_words
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors

CLASS, SEPARATOR = "<cls>", "<sep>"  # split_words never returns these
CLASS_ID, SEPARATOR_ID = 2, 3
STEM = 4  # first letters that two forms of a word must share
LIMITS = {"maximum_length": 1, "maximum_question": 1, "maximum_answer": 1, "stride": 0}  # minimum


@dataclasses.dataclass(frozen=True)
class QuestionPreprocessor(SpellingReader):
    """Converts questions and contexts to the inputs of `ka.models.question_answerer`.

    An input row is `<cls> question <sep> context`. For a checkpoint, it has the checkpoint's format
    for pairs. A long context is split into several overlapping rows (windows). Answers are spans of
    characters in the context.

    Args:
        tokenizer: `Vocabulary` of words with `<cls>` and `<sep>` as ids 2 and 3, or a
            `PretrainedTokenizer` that supports pairs.
        characters: `Vocabulary` of characters, or None for a model that does not read spelling.
        word_length: int C, the number of characters in a word that the model reads. The
            middle of a longer word is dropped.
        maximum_length: int, the maximum number of tokens in a row.
        maximum_question: int, the number of question tokens to read. The rest is cut off.
        maximum_answer: int, the maximum number of tokens in an answer.
        stride: int, the number of context tokens that consecutive rows share.

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

    tokenizer: Vocabulary | PretrainedTokenizer
    characters: Vocabulary | None = None
    word_length: int = 16
    maximum_length: int = 384
    maximum_question: int = 64
    maximum_answer: int = 30
    stride: int = 128
    kind = "question_answerer"

    def __post_init__(self):
        class_name = "QuestionPreprocessor"
        if self.reads_words:
            if self.tokenizer.entries[CLASS_ID : SEPARATOR_ID + 1] != (CLASS, SEPARATOR):
                raise ValueError(
                    f"The words of a {class_name} have {CLASS} and {SEPARATOR} at the ids "
                    f"{CLASS_ID} and {SEPARATOR_ID}: make it by {class_name}.build."
                )
        else:
            self._check_pair(class_name)
        self.check_spelling()
        for name, least in LIMITS.items():
            check_whole_number(class_name, name, getattr(self, name), least=least, most=MOST_TOKENS)
        taken = self.maximum_question + len(self.template) - 2
        if self.maximum_length < 2 * taken:
            raise ValueError(
                f"{class_name}: maximum_length={self.maximum_length} leaves no room for a context "
                f"beside {taken} tokens of a question: give at least {2 * taken}, or a smaller "
                "maximum_question."
            )

    def _check_pair(self, class_name):
        """Raise a ValueError if a checkpoint's tokenizer does not support question and context."""
        tokenizer = self.tokenizer
        if tokenizer.pair is None or tokenizer.padding_id is None:
            lacks = "pairs of strings" if tokenizer.pair is None else "padding"
            raise ValueError(f"{class_name}: this tokenizer's model has no {lacks}.")
        before = self.template.index(PAIR)
        expected = [int(k >= before) for k in range(len(self.template))]
        if tokenizer.has_segments and [segment for _, segment in tokenizer.pair] != expected:
            raise ValueError(
                f"{class_name}: expected pairs with the segment 0 before the context, 1 from "
                "there on."
            )

    @property
    def template(self):
        """list, the parts of an input row: `TEXT` (question), `PAIR` (context) and special ids."""
        if self.reads_words:
            return [CLASS_ID, TEXT, SEPARATOR_ID, PAIR]
        return [part for part, _ in self.tokenizer.pair]

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
        """Make a preprocessor whose vocabularies are collected from training examples.

        Args:
            train: list of `Question`, only the training split.
            min_count: int. Words that occur less often are treated as unknown. The words of a
                context are counted once, even if it belongs to several questions.
            max_size: int, the maximum number of word ids, including padding. None for no limit.
            lowercase: bool, whether to ignore case.
            characters: bool, whether the model also reads the spelling of words.
            word_length, **limits: arguments of the constructor.
            pattern: str, a regular expression that matches the words in a string. None uses the
                rule of `ka.data.split_words`.
        """
        texts = [*dict.fromkeys(q.context for q in train), *(q.question for q in train)]
        words = [word for text in texts for word in split_words(text, pattern)]
        options = {"min_count": min_count, "max_size": max_size, "lowercase": lowercase}
        entries = Vocabulary.build(words, **options).entries
        vocabulary = Vocabulary((*entries[:2], CLASS, SEPARATOR, *entries[2:]), lowercase, pattern)
        spelling = Vocabulary.build(c for word in words for c in word) if characters else None
        return cls(vocabulary, spelling, word_length, **limits)

    def encode(self, question, context):
        """Split a context into windows for one question, and return an `EncodedQuestion`.

        Raise a ValueError if the question or the context has no words.
        """
        asked, asked_names, _ = (x[: self.maximum_question] for x in self._read(question))
        ids, names, spans = self._read(context)
        if not asked or not ids:
            raise ValueError(f"{(context if asked else question)[:40]!r} holds no word.")
        front, front_names = [], []
        index = self.template.index(PAIR)
        for part in self.template[:index]:
            front += asked if part == TEXT else [part]
            front_names += asked_names if part == TEXT else self.tokenizer.pieces([part])
        back = self.template[index + 1 :]
        matches = None
        if self.reads_words:
            matches = [0, *_match(asked_names, names), 0], _match(names, asked_names)
        room, windows = self.maximum_length - len(front) - len(back), []
        for first, count in cut_windows(len(ids), room, self.stride):
            window = slice(first, first + count)
            segments = np.repeat(np.int32([0, 1]), [len(front), count + len(back)])
            row = np.array([*front, *ids[window], *back], "int32")
            inputs = {"token_ids": row, "segment_ids": segments}
            if matches is not None:
                inputs["exact_match"] = np.array([*matches[0], *matches[1][window]], "int32")
            tokens = (*front_names, *names[window], *self.tokenizer.pieces(back))
            windows.append(QuestionWindow(inputs, tokens, len(front), first, count))
        return EncodedQuestion(windows, spans)

    def _read(self, text):
        """Tokenize a str: return (ids, tokens, spans), with the (start, end) of each token."""
        ids, spans = self.tokenizer.encode_spans(text)
        if self.reads_words:
            return ids, [text[start:end] for start, end in spans], spans
        return ids, self.tokenizer.pieces(ids), spans

    def __call__(self, pairs, sequence_length=None):
        """Convert a list of (question, context) to model inputs, with a row for each window.

        Rows are padded to `sequence_length`, or to the longest window if it is None.
        """
        encoded = number_errors("Question", pairs, lambda pair: self.encode(*pair))
        windows = [window for one in encoded for window in one.windows]
        return self.stack(windows, sequence_length)

    def stack(self, windows, sequence_length=None):
        """Convert `windows`, a list of `QuestionWindow`, to model inputs (B, T).

        Rows are padded to `sequence_length`. None pads to the longest window.
        """
        inputs = {
            name: pad_rows(rows, padding, sequence_length)
            for name, (rows, padding) in self._list_rows(windows).items()
        }
        if self.characters is not None:
            tokens, length = [window.tokens for window in windows], inputs["token_ids"].shape[1]
            inputs["character_ids"] = self.spell_batch(tokens, length)
        return inputs

    def _list_rows(self, windows):
        """Return a dict from the name of each model input to (list of rows, value for padding)."""
        return {
            name: (
                [window.inputs[name] for window in windows],
                self.padding_id if name == "token_ids" else 0,
            )
            for name in (windows[0].inputs if windows else ())
        }

    def columns(self, examples):
        """Convert `examples` to `Columns` for `ka.data.batches`.

        An example is (`QuestionWindow`, (first, last)), where `first` and `last` are the positions
        of the answer's first and last token in the window, or both -1 without an answer. Labels are
        these positions, int32 (B, 2).
        """
        windows = [window for window, _ in examples]
        labels = np.array([span for _, span in examples], "int32")
        inputs = {name: Ragged(*rows) for name, rows in self._list_rows(windows).items()}
        if self.characters is not None:
            inputs["character_ids"] = self.spell_column([window.tokens for window in windows])
        return Columns(inputs, labels, lengths=[len(window.tokens) for window in windows])

    def spell(self, tokens):
        letters = super().spell(tokens)
        letters[[token in (CLASS, SEPARATOR) for token in tokens]] = 0
        return letters

    def config(self):
        config = super().config() | {name: getattr(self, name) for name in LIMITS}
        if not self.reads_words:
            return config
        return config | {
            **self.describe_spelling(),
            "row": f"{CLASS} question {SEPARATOR} context",
            "exact_match": f"2 for a word that the other text has, whatever its case, 1 for one "
            f"of at least {STEM} characters of which the other text has the first {STEM}, else 0",
            "class_id": CLASS_ID,
            "separator_id": SEPARATOR_ID,
        }

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
        config, tokenizer = cls.load_tokenizer(folder)
        spelling = load_spelling(config) if isinstance(tokenizer, Vocabulary) else ()
        limits = {n: config.whole(n, most=MOST_TOKENS, least=k) for n, k in LIMITS.items()}
        return cls(tokenizer, *spelling, **limits)


def _match(words, other_words):
    """Find out which words also occur in another list, to help a model locate answers.

    Return a list with an int for each of `words`: 2 if the word is in `other_words` (ignoring
    case), 1 if only its first `STEM` letters equal those of such a word, and otherwise 0.
    """
    other_words = {word.lower() for word in other_words}
    stems = {word[:STEM] for word in other_words if len(word) >= STEM}
    return [
        2 if word in other_words else int(len(word) >= STEM and word[:STEM] in stems)
        for word in (word.lower() for word in words)
    ]
