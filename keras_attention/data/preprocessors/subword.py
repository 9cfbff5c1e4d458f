"""Texts and sentences to the inputs of a pretrained encoder, by the tokenizer of its checkpoint."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Ragged
from keras_attention.data.preprocessors.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    cut_windows,
)
from keras_attention.data.preprocessors.question import (
    LIMITS,
    QuestionPreprocessor,
    check_limits,
    read_limits,
    stack_windows,
)
from keras_attention.data.preprocessors.tagger import TaggerPreprocessor
from keras_attention.data.preprocessors.text import TextPreprocessor
from keras_attention.data.tokenizers.pretrained import (
    PAIR,
    TEXT,
    PretrainedTokenizer,
    TokenizerOwner,
)
from keras_attention.data.tokenizers.subwords import check_texts
from keras_attention.data.tokenizers.vocabulary import Labels
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.manifest import read_preprocessing
from keras_attention.files.word_pattern import check_pattern, make_portable

LABELS = "labels.txt"


@dataclasses.dataclass(frozen=True)
class SubwordPreprocessor(TokenizerOwner):
    """What preprocessors by a checkpoint's tokenizer share.

    Args:
        tokenizer: `PretrainedTokenizer`.
        labels: `Labels`, or their names.
    """

    tokenizer: PretrainedTokenizer
    labels: Labels
    kind = None
    unit = "subwords"  # what its limit counts
    characters = None  # no model of these sees the spelling

    def __post_init__(self):
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))
        if self.tokenizer.padding_id is None:
            raise ValueError(
                f"{type(self).__name__}: every id of this tokenizer is a token, and rows of a "
                "batch differ in length: it needs one for padding."
            )

    @property
    def padding_id(self):
        """int, the id after the end of a text."""
        return self.tokenizer.padding_id

    @property
    def vocabulary_size(self):
        """None: a checkpoint's model may have room for more ids than its tokenizer gives."""
        return None

    @property
    def maximum_length(self):
        """int, the tokens of a text at most, special ones included, or None."""
        return self.tokenizer.max_length

    def as_inputs(self, ids):
        """What the model takes, of ids (B, T): with `"segment_ids"`, all 0, where it reads them."""
        return {"token_ids": ids, "segment_ids": ids * 0} if self.tokenizer.has_segments else ids

    def as_columns(self, rows, words=None):
        """The inputs of a model as columns, of a list of ids (T,)."""
        token_ids = Ragged(rows, self.padding_id)
        if not self.tokenizer.has_segments:
            return token_ids
        return {"token_ids": token_ids, "segment_ids": Ragged([row * 0 for row in rows], 0)}

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        return {"kind": self.kind, "labels": LABELS, "tokenizer": self.tokenizer.config()}

    def parts(self):
        return {LABELS: self.labels, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind)
        tokenizer = PretrainedTokenizer.load(folder, config.object("tokenizer"))
        return cls(tokenizer, Labels.load(config.file("labels")))


@dataclasses.dataclass(frozen=True)
class SubwordTextPreprocessor(SubwordPreprocessor):
    """Turns texts into the inputs of a `text_classifier` that began as a checkpoint.

    Args:
        tokenizer: `PretrainedTokenizer`. Of a longer text than its `max_length` the model sees the
            beginning.
        labels: `Labels`, or their names.

    Calling it on a list of texts gives token ids int32 (B, T), or a dict with `"segment_ids"`, too.

    Example:

    ```python
    import keras_attention as ka

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "film", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.SubwordTextPreprocessor(tokenizer, ["bad", "good"])
    inputs = preprocessor(["Good films", "good"])
    assert inputs["token_ids"].tolist() == [[2, 4, 5, 6, 3], [2, 4, 3, 0, 0]]
    assert preprocessor.names([[0.0, 3.0]]) == ["good"]
    ```
    """

    kind = "subword_classifier"

    def __call__(self, texts, sequence_length=None):
        """The model's inputs for a batch of texts.

        Args:
            texts: list of str.
            sequence_length: int T, pads to that length, and cuts what is longer; None pads to the
                longest text.
        """
        texts = check_texts("SubwordTextPreprocessor", texts)
        rows = self.tokenizer.encode(texts, max_length=sequence_length)
        return self.as_inputs(self.tokenizer.stack(rows, sequence_length))

    def ids(self, text):
        """Token ids (T,) of one text."""
        return np.array(self.tokenizer.encode([text])[0], "int32")

    columns = TextPreprocessor.columns

    def is_cut(self, text):
        """Whether the model sees the beginning of a text alone."""
        (ids,) = self.tokenizer.encode([text], max_length=MOST_TOKENS)
        return self.maximum_length is not None and len(ids) > self.maximum_length

    def split(self, text):
        """The pieces of a text that the model sees, as str."""
        return self.tokenizer.pieces(self.ids(text))

    def names(self, logits):
        """The label that each row of logits (B, num_classes) gives, as a list of str."""
        return [self.labels.names[i] for i in np.argmax(np.asarray(logits), axis=-1)]


@dataclasses.dataclass(frozen=True)
class SubwordTaggerPreprocessor(SubwordPreprocessor):
    """Turns sentences into the inputs of a `sequence_labeler` that began as a checkpoint.

    The tag of a word is that of its first piece (Devlin et al., 2019, section 5.3).

    Args:
        tokenizer: `PretrainedTokenizer`.
        labels: `Labels`, or their names.
        pattern: str, or None, as in `TaggerPreprocessor`.

    Calling it on lists of words gives token ids int32 (B, T), or a dict with `"segment_ids"`, too.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dog", "bark", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.SubwordTaggerPreprocessor(tokenizer, ["NOUN", "VERB"])
    assert preprocessor([["Dogs", "bark"]])["token_ids"].tolist() == [[2, 4, 6, 5, 3]]
    logits = np.eye(2)[[[0, 0, 1, 1, 0]]]
    assert preprocessor.tags(logits, [["Dogs", "bark"]]) == [["NOUN", "VERB"]]
    ```
    """

    pattern: str | None = dataclasses.field(default=None, repr=False)
    kind = "subword_tagger"

    def __post_init__(self):
        super().__post_init__()
        pattern = check_pattern("SubwordTaggerPreprocessor", self.pattern)
        object.__setattr__(self, "pattern", pattern)

    def __call__(self, sentences, sequence_length=None):
        """The model's inputs for a batch of sentences.

        Args:
            sentences: list of lists of str, one for each word.
            sequence_length: int T, pads to that length; None pads to the longest sentence.
        """
        rows = [self.encode(words)[0] for words in sentences]
        return self.as_inputs(self.tokenizer.stack(rows, sequence_length))

    def encode(self, words):
        """Ids int32 (T,) of a sentence, and the places (W,) of those that carry the words' tags."""
        ids, places = self.tokenizer.encode_words(words)
        return np.array(ids, "int32"), np.array(places, "int64")

    columns = TaggerPreprocessor.columns

    def count_pieces(self, words):
        """Count the pieces of a sentence of words, special ones included."""
        return len(self.tokenizer.encode_words(words, max_length=MOST_TOKENS)[0])

    def word_logits(self, logits, words):
        """Logits (W, L) of the words of one sentence, from those of its pieces (T, L)."""
        return np.asarray(logits)[self.encode(words)[1]]

    def tags(self, logits, sentences):
        """The tags that logits (B, T, num_labels) give to sentences: a list of str for each."""
        return [
            [self.labels.names[i] for i in np.argmax(self.word_logits(row, words), axis=-1)]
            for row, words in zip(np.asarray(logits), sentences, strict=True)
        ]

    def name_places(self, words, tags):
        """For a picture: what each place is called that looks (with the tag), and that is seen."""
        ids, places = self.encode(words)
        keys = self.tokenizer.pieces(ids)
        queries = list(keys)
        for place, tag in zip(places, tags, strict=True):
            queries[place] = f"{keys[place]}  {tag}"
        return queries, keys

    def config(self):
        return {**super().config(), "split": make_portable(self.pattern)}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        pattern = read_preprocessing(folder, cls.kind).pattern("split", default=None)
        return dataclasses.replace(super().load(folder), pattern=pattern)


@dataclasses.dataclass(frozen=True)
class SubwordQuestionPreprocessor(TokenizerOwner):
    """Turns questions and contexts into the inputs of a checkpoint's `question_answerer`.

    A row is what the checkpoint makes of a pair of texts; a context that is too long becomes
    several rows, which overlap. Answers are characters of the context as it is.

    Args:
        tokenizer: `PretrainedTokenizer`, which knows pairs.
        maximum_length: int, the tokens of a row at most.
        maximum_question: int, the tokens of a question that are read.
        maximum_answer: int, the tokens of an answer at most.
        stride: int, the tokens that a row has in common with the next one of a long context.

    Example:

    ```python
    import keras_attention as ka

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "sat", "cat", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.SubwordQuestionPreprocessor(tokenizer)
    encoded = preprocessor.encode("Who sat?", "Cats sat.")
    assert encoded.windows[0].inputs["token_ids"].tolist() == [2, 4, 5, 1, 3, 6, 7, 5, 1, 3]
    assert encoded.windows[0].inputs["segment_ids"].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert encoded.spans.tolist() == [[0, 3], [3, 4], [5, 8], [8, 9]]
    ```
    """

    tokenizer: PretrainedTokenizer
    maximum_length: int = 384
    maximum_question: int = 64
    maximum_answer: int = 30
    stride: int = 128
    unit = "subwords"
    kind = "subword_question_answerer"
    characters = None  # no model of these sees the spelling

    def __post_init__(self):
        owner, tokenizer = type(self).__name__, self.tokenizer
        if tokenizer.pair is None or tokenizer.padding_id is None:
            lacks = "pairs of texts" if tokenizer.pair is None else "padding"
            raise ValueError(f"{owner}: this tokenizer's model knows no {lacks}.")
        before = [what for what, _ in tokenizer.pair].index(PAIR)
        wanted = [int(k >= before) for k in range(len(tokenizer.pair))]
        if tokenizer.has_segments and [segment for _, segment in tokenizer.pair] != wanted:
            raise ValueError(
                f"{owner}: the segments of this tokenizer's pairs do not tell a question from its "
                "context: expected 0 up to the context, and 1 from there on."
            )
        check_limits(self, special=len(tokenizer.pair) - 2)

    @property
    def padding_id(self):
        """int, the id after the end of a row."""
        return self.tokenizer.padding_id

    @property
    def vocabulary_size(self):
        """None: a checkpoint's model may have room for more ids than its tokenizer gives."""
        return None

    def encode(self, question, context):
        """The `EncodedQuestion` of two texts; a ValueError where one holds no word."""
        asked = self.tokenizer.encode_spans(question)[0][: self.maximum_question]
        ids, spans = self.tokenizer.encode_spans(context)
        if not asked or not ids:
            raise ValueError(f"{(context if asked else question)[:40]!r} holds no word.")
        template = [what for what, _ in self.tokenizer.pair]
        front = [i for what in template[: template.index(PAIR)]
                 for i in (asked if what == TEXT else [what])]  # fmt: skip
        back = template[template.index(PAIR) + 1 :]
        room, windows = self.maximum_length - len(front) - len(back), []
        for first, count in cut_windows(len(ids), room, self.stride):
            row = [*front, *ids[first : first + count], *back]
            segments = np.repeat(np.int32([0, 1]), [len(front), count + len(back)])
            inputs = {"token_ids": np.array(row, "int32"), "segment_ids": segments}
            tokens = tuple(self.tokenizer.pieces(row))
            windows.append(QuestionWindow(inputs, tokens, len(front), first, count))
        return EncodedQuestion(windows, spans)

    def __call__(self, pairs, sequence_length=None):
        """The model's inputs for all windows of pairs of a question and a context, in order.

        Args:
            pairs: list of (question, context), two str.
            sequence_length: int T, pads to that length; None pads to the longest.
        """
        windows = [window for pair in pairs for window in self.encode(*pair).windows]
        return self.stack(windows, sequence_length)

    def stack(self, windows, sequence_length=None):
        """The model's inputs (B, T) for a list of `QuestionWindow`."""
        return stack_windows(windows, self.padding_id, sequence_length)

    columns = QuestionPreprocessor.columns

    def config(self):
        """The entry in the manifest: all that an app needs to repeat the preprocessing."""
        limits = {name: getattr(self, name) for name in LIMITS}
        return {"kind": self.kind, "tokenizer": self.tokenizer.config(), **limits}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config = read_preprocessing(folder, cls.kind)
        tokenizer = PretrainedTokenizer.load(folder, config.object("tokenizer"))
        return cls(tokenizer, **read_limits(config))
