"""`TaggerPreprocessor`: converts words to the inputs of a tagger or parser, and logits to tags."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, Ragged, pad_rows
from keras_attention.data.preprocessors.spelling import SpellingReader, load_spelling
from keras_attention.data.readers.bracketed_trees import ConstituencyTree
from keras_attention.data.readers.constituency_trees import encode_tree
from keras_attention.data.readers.dependency_trees import DependencyTree
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import PADDING_ID
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.word_pattern import check_pattern

LABELS = "labels.txt"


@dataclasses.dataclass(frozen=True)
class TaggerPreprocessor(SpellingReader):
    """Converts sentences to the inputs of `ka.models.sequence_labeler`, in NumPy.

    Call the object on a list of sentences, which are lists of words, to get `{"token_ids": (B, T),
    "character_ids": (B, T, C)}`, or only the array of token ids if `characters` is None. Arrays are
    int32, padded at the end. If a checkpoint's model reads segment ids, the result is a dict with
    `"token_ids"` and `"segment_ids"`.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a checkpoint's model. If a
            word is split into pieces, its tag is predicted at the first piece (Devlin et al., 2019,
            section 5.3).
        labels: `Labels`, or the names of the tags.
        characters: `Vocabulary` of characters, or None for a model that does not read spelling.
        word_length: int C, the number of characters in a word that the model reads, at most 1,024.
            The middle of a longer word is dropped, because it says least about the word.
        pattern: str, a regular expression without capturing groups that matches the words in a
            string. None uses the rule of `ka.data.split_words`.

    ```python
    import keras_attention as ka

    sentence = ka.data.Sentence(("Dogs", "bark"), ("NOUN", "VERB"))
    preprocessor = ka.data.TaggerPreprocessor.build([sentence], word_length=8)
    inputs = preprocessor([["Dogs", "bark", "loudly"], ["Dogs"]])
    assert inputs["token_ids"].tolist() == [[2, 3, 1], [2, 0, 0]]
    assert inputs["character_ids"].shape == (2, 3, 8)
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    labels: Labels
    characters: Vocabulary | None = None
    word_length: int = 16
    pattern: str | None = dataclasses.field(default=None, repr=False)
    kind = "tagger"

    def __post_init__(self):
        object.__setattr__(self, "labels", Labels.of(self.labels))
        self.check_padding()
        self.check_spelling()
        object.__setattr__(self, "pattern", check_pattern("TaggerPreprocessor", self.pattern))

    @classmethod
    def build(
        cls,
        train,
        labels=None,
        *,
        min_count=1,
        max_size=None,
        lowercase=False,
        characters=True,
        word_length=16,
        pattern=None,
    ):
        """Make a preprocessor whose vocabularies are collected from training examples.

        Args:
            train: list of `Sentence`, only the training split.
            labels: the names of the tags, such as `data.labels`. None uses the tags in `train`.
            min_count: int. Words that occur less often are treated as unknown.
            max_size: int, the maximum number of word ids, including padding. None for no limit.
            lowercase: bool, whether words are compared without case.
            characters: bool, whether the model also reads the spelling of words. Characters keep
                their case.
            word_length, pattern: arguments of the constructor.
        """
        if labels is None:
            labels = sorted({tag for sentence in train for tag in sentence.tags})
        tokens = [token for sentence in train for token in sentence.tokens]
        options = {"min_count": min_count, "max_size": max_size, "lowercase": lowercase}
        words = Vocabulary.build(tokens, **options)
        spelling = Vocabulary.build(c for t in tokens for c in t) if characters else None
        return cls(words, Labels(labels), spelling, word_length, pattern)

    def __call__(self, sentences, sequence_length=None):
        """Convert a list of sentences, which are lists of words, to model inputs.

        Rows are padded to `sequence_length`, or to the longest sentence if it is None.
        """
        for sentence in sentences:
            if isinstance(sentence, str):
                raise ValueError(
                    f"{sentence!r} is a text, not a list of tokens. Split it into words first, for "
                    "example with ka.data.split_words(text)."
                )
        rows = [self.encode(words)[0] for words in sentences]
        inputs = self.as_inputs(pad_rows(rows, self.padding_id, sequence_length))
        if self.characters is None:
            return inputs
        character_ids = self.spell_batch(sentences, inputs.shape[1])
        return {"token_ids": inputs, "character_ids": character_ids}

    @property
    def maximum_length(self):
        """int, the maximum number of tokens that a checkpoint's model reads. None for no limit."""
        return self.tokenizer.max_length

    def encode(self, words):
        """Return (ids, positions) for `words`, a list of W str: int32 ids (T,), and ints (W,).

        The position of a word is the position of its first token, because a word may have several
        tokens.
        """
        ids, positions = self.tokenizer.encode_words(words)
        return np.array(ids, "int32"), np.array(positions, "int64")

    def count_pieces(self, words):
        """Return the number of tokens in a list of words, including special tokens."""
        return len(self.tokenizer.encode_words(words, max_length=MOST_TOKENS)[0])

    def as_columns(self, rows, words):
        """Return the model inputs of sentences as columns for `Columns`.

        `rows` is a list with the ids (T,) of each sentence, and `words` a list with its words.
        """
        inputs = super().as_columns(rows)
        if self.characters is None:
            return inputs
        return {"token_ids": inputs, "character_ids": self.spell_column(words)}

    def columns(self, examples):
        """Convert a list of sentences or trees to `Columns` for `ka.data.batches`.

        `examples` are `Sentence`, `DependencyTree` or `ConstituencyTree`. Labels are int32 (B, T),
        and -1 at padding and at all pieces of a word after its first. For dependency trees, labels
        are a dict of such arrays: `"arc_scores"` contains the heads and `"label_scores"` the
        relations. For constituency trees, inputs include `"target_ids"`, which start with the begin
        id, and labels are the ids that follow.
        """
        words = [example.tokens for example in examples]
        if isinstance(examples[0], ConstituencyTree):
            return self._tree_columns(examples, words)
        of_trees = isinstance(examples[0], DependencyTree)
        tags = [example.relations if of_trees else example.tags for example in examples]
        check_tags(words, tags, self.labels)
        rows, labels = [], []
        for tokens, names in zip(words, tags, strict=True):
            ids, positions = self.encode(tokens)
            row = np.full(len(ids), -1, "int32")
            row[positions] = self.labels.ids(names)
            rows.append(ids)
            labels.append(row)
        labels = Ragged(labels, -1)
        if of_trees:
            heads = Ragged([tree.heads for tree in examples], -1)
            labels = {"arc_scores": heads, "label_scores": labels}
        return Columns(self.as_columns(rows, words), labels, lengths=list(map(len, rows)))

    def _tree_columns(self, trees, words):
        inputs = self.as_columns([self.encode(tokens)[0] for tokens in words], words)
        inputs = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        targets = [encode_tree(tree, self.labels) for tree in trees]
        inputs["target_ids"] = Ragged([ids[:-1] for ids in targets], PADDING_ID)
        labels = Ragged([ids[1:] for ids in targets], -1)
        return Columns(inputs, labels, lengths=[len(ids) - 1 for ids in targets])

    def word_logits(self, logits, words):
        """Return the logits (W, number of labels) at the first token of each of W words.

        `logits` are (T, number of labels), for all T tokens of the words.
        """
        return np.asarray(logits)[self.encode(words)[1]]

    def tags(self, logits, sentences):
        """Return a list for each sentence with the most probable tag of each word, a str.

        `logits` are (B, T, number of labels), and `sentences` are the lists of words.
        """
        return [
            [self.labels.names[i] for i in np.argmax(self.word_logits(row, tokens), axis=-1)]
            for row, tokens in zip(np.asarray(logits), sentences, strict=True)
        ]

    def name_places(self, words, tags):
        """Return the names of rows and of columns for a plot of attention weights.

        `words` and `tags` are lists of str, one tag for each word. Both results are lists of str
        with a token each. The rows (queries) also show the tags.
        """
        keys = self.tokenizer.name_words(words)
        queries = list(keys)
        for index, tag in zip(self.encode(words)[1], tags, strict=True):
            queries[index] = f"{keys[index]}  {tag}"
        return queries, keys

    def config(self):
        config = {**super().config(), "labels": LABELS, "split": self.pattern}
        if not self.reads_words:
            return config
        return config | self.describe_spelling() | {"lowercase_characters": False}

    def parts(self):
        return {LABELS: self.labels, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Load a preprocessor from the files that `save` wrote into `folder`."""
        config, tokenizer = cls.load_tokenizer(folder)
        # The pattern is a field of the preprocessor, not of its vocabulary.
        pattern, labels = config.pattern("split", default=None), Labels.load(config.file("labels"))
        if not isinstance(tokenizer, Vocabulary):
            return cls(tokenizer, labels, pattern=pattern)
        words = dataclasses.replace(tokenizer, pattern=None)
        return cls(words, labels, *load_spelling(config), pattern)


def check_tags(words, tags, labels):
    """Raise a ValueError that names the sentence and word if a tag is not among the labels.

    `words` and `tags` are lists with one list of str for each sentence.
    """
    names = set(labels.names)
    for number, sentence in enumerate(zip(words, tags, strict=True), start=1):
        for token, tag in zip(*sentence, strict=True):
            if tag not in names:
                raise ValueError(
                    f"Sentence {number} tags {token!r} as {tag!r}, which is not among the labels: "
                    f"{', '.join(labels.names)}."
                )
