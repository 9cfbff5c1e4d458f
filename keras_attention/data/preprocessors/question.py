"""`QuestionPreprocessor`: questions and contexts to the inputs of a model, and spans to answers."""

import dataclasses

import numpy as np

from keras_attention.core import checks
from keras_attention.data.columns import Columns, Ragged, number_tokens, pad_rows
from keras_attention.data.preprocessors.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    cut_windows,
)
from keras_attention.data.preprocessors.tagger import (
    CHARACTERS,
    LONGER_WORDS,
    MOST_CHARACTERS,
    load_spelling,
    spell,
)
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.tokenizers.pretrained import PAIR, TEXT, PretrainedTokenizer
from keras_attention.data.tokenizers.vocabulary import Vocabulary, split_words
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors

CLASS, SEPARATOR = "<cls>", "<sep>"  # no word is split off that reads so
CLASS_ID, SEPARATOR_ID = 2, 3
STEM = 4  # letters that words in another form share with it
LIMITS = ("maximum_length", "maximum_question", "maximum_answer", "stride")


@dataclasses.dataclass(frozen=True)
class QuestionPreprocessor(TokenizerOwner):
    """Turns questions and contexts into the inputs of `ka.models.question_answerer`.

    A row is `<cls> question <sep> context`, or what a checkpoint makes of a pair of texts; a
    context that is too long becomes several rows, which overlap. Answers are characters of the
    context as it is.

    Args:
        tokenizer: `Vocabulary` of words, which has `<cls>` and `<sep>` at the ids 2 and 3; or a
            `PretrainedTokenizer` that knows pairs.
        characters: `Vocabulary` of characters, or None for a model that does not see the spelling.
        word_length: int C, characters of a word that the model sees. See `TaggerPreprocessor`.
        maximum_length: int, the tokens of a row at most.
        maximum_question: int, the tokens of a question that are read.
        maximum_answer: int, the tokens of an answer at most.
        stride: int, the tokens that a row has in common with the next one of a long context.

    ```python
    import keras_attention as ka

    context = "The dog barks at cats."
    asked = ka.data.Question("What barked at cats?", context, (ka.data.Answer("The dog", 0),))
    preprocessor = ka.data.QuestionPreprocessor.build([asked], characters=False)
    inputs = preprocessor([(asked.question, context)])
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]]
    assert inputs["exact_match"].tolist() == [[0, 0, 1, 2, 2, 0, 0, 0, 0, 1, 2, 2, 0]]

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "sat", "cat", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    encoded = ka.data.QuestionPreprocessor(tokenizer).encode("Who sat?", "Cats sat.")
    assert encoded.windows[0].inputs["token_ids"].tolist() == [2, 4, 5, 1, 3, 6, 7, 5, 1, 3]
    assert encoded.windows[0].inputs["segment_ids"].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert encoded.spans.tolist() == [[0, 3], [3, 4], [5, 8], [8, 9]]
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
        owner = "QuestionPreprocessor"
        if self.reads_words:
            if self.tokenizer.entries[CLASS_ID : SEPARATOR_ID + 1] != (CLASS, SEPARATOR):
                raise ValueError(
                    f"The words of a {owner} have {CLASS} and {SEPARATOR} at the ids {CLASS_ID} "
                    f"and {SEPARATOR_ID}: make it by {owner}.build."
                )
        else:
            self._check_pair(owner)
        checks.check_whole_number(owner, "word_length", self.word_length, most=MOST_CHARACTERS)
        for name in LIMITS:
            least = 0 if name == "stride" else 1
            limit = getattr(self, name)
            checks.check_whole_number(owner, name, limit, least=least, most=MOST_TOKENS)
        taken = self.maximum_question + len(self.template) - 2
        if self.maximum_length < 2 * taken:
            raise ValueError(
                f"{owner}: maximum_length={self.maximum_length} leaves no room for a context "
                f"beside {taken} tokens of a question: give at least {2 * taken}, or a smaller "
                "maximum_question."
            )

    def _check_pair(self, owner):
        """Refuses a checkpoint's tokenizer that does not tell a question from its context."""
        tokenizer = self.tokenizer
        if tokenizer.pair is None or tokenizer.padding_id is None:
            lacks = "pairs of texts" if tokenizer.pair is None else "padding"
            raise ValueError(f"{owner}: this tokenizer's model knows no {lacks}.")
        before = self.template.index(PAIR)
        expected = [int(k >= before) for k in range(len(self.template))]
        if tokenizer.has_segments and [segment for _, segment in tokenizer.pair] != expected:
            raise ValueError(
                f"{owner}: the segments of this tokenizer's pairs do not tell a question from its "
                "context: expected 0 up to the context, and 1 from there on."
            )

    @property
    def template(self):
        """list of what a row consists of: `TEXT`, `PAIR`, and ids of special tokens."""
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
        """Return the vocabularies of `train`.

        Args:
            train: list of `Question`: the training part, and nothing of the others.
            min_count, max_size, lowercase: of the words, as in `Vocabulary.build`. A context counts
                once, however many questions are about it.
            characters: bool, whether the model sees the spelling, too.
            word_length: int.
            pattern: str, or None, as in `Vocabulary`.
            limits: the lengths of the constructor.
        """
        texts = [*dict.fromkeys(q.context for q in train), *(q.question for q in train)]
        words = [word for text in texts for word in split_words(text, pattern)]
        entries = Vocabulary.build(
            words, min_count=min_count, max_size=max_size, lowercase=lowercase
        ).entries
        vocabulary = Vocabulary((*entries[:2], CLASS, SEPARATOR, *entries[2:]), lowercase, pattern)
        spelling = Vocabulary.build(c for word in words for c in word) if characters else None
        return cls(vocabulary, spelling, word_length, **limits)

    def encode(self, question, context):
        """Return the `EncodedQuestion` of two texts; a ValueError where one holds no word."""
        asked, asked_names, _ = (x[: self.maximum_question] for x in self._read(question))
        ids, names, spans = self._read(context)
        if not asked or not ids:
            raise ValueError(f"{(context if asked else question)[:40]!r} holds no word.")
        front, front_names = [], []
        place = self.template.index(PAIR)
        for part in self.template[:place]:
            front += asked if part == TEXT else [part]
            front_names += asked_names if part == TEXT else self.tokenizer.pieces([part])
        back = self.template[place + 1 :]
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
        """Return (ids, the tokens as str, their characters int (n, 2)) of a text."""
        ids, spans = self.tokenizer.encode_spans(text)
        if self.reads_words:
            return ids, [text[start:end] for start, end in spans], spans
        return ids, self.tokenizer.pieces(ids), spans

    def __call__(self, pairs, sequence_length=None):
        """Return the model's inputs for all windows of pairs of a question and a context, in order.

        Args:
            pairs: list of (question, context), two str.
            sequence_length: int T, pads to that length; None pads to the longest.
        """
        encoded = number_errors("Question", pairs, lambda pair: self.encode(*pair))
        windows = [window for one in encoded for window in one.windows]
        return self.stack(windows, sequence_length)

    def stack(self, windows, sequence_length=None):
        """Return the model's inputs (B, T) for a list of `QuestionWindow`."""
        inputs = {
            name: pad_rows(
                [window.inputs[name] for window in windows],
                self.padding_id if name == "token_ids" else 0,
                sequence_length,
            )
            for name in (windows[0].inputs if windows else ())
        }
        if self.characters is not None:
            letters = [self.spell(window.tokens) for window in windows]
            length, shape = inputs["token_ids"].shape[1], (self.word_length,)
            inputs["character_ids"] = pad_rows(letters, length=length, shape=shape)
        return inputs

    def columns(self, examples):
        """Return `Columns` of a list of (`QuestionWindow`, (first, last)), for `ka.data.batches`.

        The pair says at which places of the window its answer begins and ends, or -1 where that
        is not known. Labels are int32 (B, 2).
        """
        windows = [window for window, _ in examples]
        labels = np.array([span for _, span in examples], "int32")
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
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        config = self.describe_tokenizer() | {name: getattr(self, name) for name in LIMITS}
        if not self.reads_words:
            return config
        return config | {
            "characters": CHARACTERS if self.characters else None,
            "word_length": self.word_length,
            "longer_words": LONGER_WORDS,
            "row": f"{CLASS} question {SEPARATOR} context",
            "exact_match": f"2 for a word that the other text has, whatever its case, 1 for one "
            f"of at least {STEM} characters of which the other text has the first {STEM}, else 0",
            "class_id": CLASS_ID,
            "separator_id": SEPARATOR_ID,
        }

    def parts(self):
        characters = {} if self.characters is None else {CHARACTERS: self.characters}
        return {**characters, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config, tokenizer = cls.load_tokenizer(folder)
        spelling = load_spelling(config) if isinstance(tokenizer, Vocabulary) else ()
        limits = {
            name: config.whole(name, most=MOST_TOKENS, least=0 if name == "stride" else 1)
            for name in LIMITS
        }
        return cls(tokenizer, *spelling, **limits)


def _match(words, others):
    """For each word 2 where it is among `others`, 1 where one begins alike, else 0."""
    others = {word.lower() for word in others}
    stems = {word[:STEM] for word in others if len(word) >= STEM}
    return [
        2 if word in others else int(len(word) >= STEM and word[:STEM] in stems)
        for word in (word.lower() for word in words)
    ]
