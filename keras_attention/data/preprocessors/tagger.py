"""`TaggerPreprocessor`: words to the inputs of a tagger, and its logits to tags."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, Ragged, number_tokens, pad_rows
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.readers.bracketed_trees import ConstituencyTree
from keras_attention.data.readers.constituency_trees import encode_tree
from keras_attention.data.readers.dependency_trees import DependencyTree
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import PADDING_ID
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.word_pattern import check_pattern

CHARACTERS, LABELS = "characters.txt", "labels.txt"
LONGER_WORDS = "the first word_length - word_length // 2 characters and the last word_length // 2"
MOST_CHARACTERS = 1 << 10  # a longer string is no word


@dataclasses.dataclass(frozen=True)
class TaggerPreprocessor(TokenizerOwner):
    """Turns sentences into the inputs of `ka.models.sequence_labeler`, in NumPy.

    Args:
        tokenizer: `Vocabulary` of words, or `PretrainedTokenizer` for a model that began as a
            checkpoint. The tag of a word is that of its first piece (Devlin et al., 2019, section
            5.3).
        labels: `Labels`, or their names.
        characters: `Vocabulary` of the characters, or None for a model that sees no spelling.
        word_length: int C, the characters of a word that the model sees, at most 1,024. Of a longer
            word these are the first half and the last: case and prefix are at its beginning,
            inflection is at its end, and what tells words apart least is in the middle.
        pattern: str, a regular expression without capturing groups, whose matches are the words.
            A task uses it where it gets a text. None stands for that of `ka.data.split_words`.

    Calling it gives what the model takes: `{"token_ids": (B, T), "character_ids": (B, T, C)}`, or
    without characters only the token ids (B, T); all int32, with padding behind. Where a
    checkpoint's model reads them, there are `"segment_ids"`, too.

    ```python
    import numpy as np
    import keras_attention as ka

    sentence = ka.data.Sentence(("Dogs", "bark"), ("NOUN", "VERB"))
    preprocessor = ka.data.TaggerPreprocessor.build([sentence], word_length=8)
    inputs = preprocessor([["Dogs", "bark", "loudly"], ["Dogs"]])
    assert inputs["token_ids"].tolist() == [[2, 3, 1], [2, 0, 0]]
    assert inputs["character_ids"].shape == (2, 3, 8)

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dog", "bark", "##s"]
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    preprocessor = ka.data.TaggerPreprocessor(tokenizer, ["NOUN", "VERB"])
    assert preprocessor([["Dogs", "bark"]])["token_ids"].tolist() == [[2, 4, 6, 5, 3]]
    logits = np.eye(2)[[[0, 0, 1, 1, 0]]]
    assert preprocessor.tags(logits, [["Dogs", "bark"]]) == [["NOUN", "VERB"]]
    ```
    """

    tokenizer: Vocabulary | PretrainedTokenizer
    labels: Labels
    characters: Vocabulary | None = None
    word_length: int = 16
    pattern: str | None = dataclasses.field(default=None, repr=False)
    kind = "tagger"

    def __post_init__(self):
        self.check_labels()
        self.check_padding()
        check_whole_number(
            "TaggerPreprocessor", "word_length", self.word_length, most=MOST_CHARACTERS
        )
        if self.characters is not None and not self.reads_words:
            raise ValueError(
                "TaggerPreprocessor(characters=...) is for a vocabulary of words: a checkpoint's "
                "model sees no spelling. Leave it out."
            )
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
        """Return the vocabularies of `train`.

        Args:
            train: list of `Sentence`: the training part, and nothing of the others.
            labels: names of the labels, such as `data.labels`; None for the tags in `train`.
            min_count, max_size, lowercase: of the word vocabulary, as in `Vocabulary.build`.
                Characters keep their case.
            characters: bool, whether the model sees the spelling, too.
            word_length: int.
            pattern: str, or None, as in the constructor.
        """
        if labels is None:
            labels = sorted({tag for sentence in train for tag in sentence.tags})
        tokens = [token for sentence in train for token in sentence.tokens]
        words = Vocabulary.build(
            tokens, min_count=min_count, max_size=max_size, lowercase=lowercase
        )
        spelling = Vocabulary.build(c for t in tokens for c in t) if characters else None
        return cls(words, Labels(labels), spelling, word_length, pattern)

    def __call__(self, sentences, sequence_length=None):
        """Return the model's inputs for a batch of sentences.

        Args:
            sentences: list of lists of str, one for each token.
            sequence_length: int T, pads to that length; None pads to the longest sentence.
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
        letters = [self.spell(tokens) for tokens in sentences]
        character_ids = pad_rows(letters, length=inputs.shape[1], shape=(self.word_length,))
        return {"token_ids": inputs, "character_ids": character_ids}

    @property
    def maximum_length(self):
        """int, the tokens of a sentence that a checkpoint's model reads at most, or None."""
        return self.tokenizer.max_length

    def encode(self, words):
        """Ids int32 (T,) of a sentence, and the places (W,) of those that carry the words' tags."""
        ids, positions = self.tokenizer.encode_words(words)
        return np.array(ids, "int32"), np.array(positions, "int64")

    def count_pieces(self, words):
        """Count the tokens of a sentence of words, special ones included."""
        return len(self.tokenizer.encode_words(words, max_length=MOST_TOKENS)[0])

    def as_columns(self, rows, words):
        """Return the inputs of a model as columns, of lists of ids (T,) and of words."""
        inputs = super().as_columns(rows)
        if self.characters is None:
            return inputs
        tokens, numbers = number_tokens(words)
        return {"token_ids": inputs, "character_ids": Ragged(numbers, 0, self.spell(tokens))}

    def columns(self, examples):
        """Return `Columns` of a list of `Sentence`, `DependencyTree` or `ConstituencyTree`.

        Labels are int32 (B, T), -1 at padding and at pieces of a word after its first. Those of
        dependency trees are a dict: `"arc_scores"`, the heads, and `"label_scores"`, the relations.
        Constituency trees have `"target_ids"` among their inputs, from the begin id on; labels are
        the ids that follow.
        """
        return place_labels(examples, self)

    def word_logits(self, logits, words):
        """Logits (W, L) of the words of one sentence, from those of its tokens (T, L)."""
        return np.asarray(logits)[self.encode(words)[1]]

    def spell(self, tokens):
        """Character ids (T, C) of tokens (T,), 0 after the end of a word."""
        return spell(tokens, self.characters, self.word_length)

    def tags(self, logits, sentences):
        """Return the tags that logits (B, T, num_labels) give to sentences.

        A list of str for each.
        """
        return [
            [self.labels.names[i] for i in np.argmax(self.word_logits(row, tokens), axis=-1)]
            for row, tokens in zip(np.asarray(logits), sentences, strict=True)
        ]

    def name_places(self, words, tags):
        """For a picture: what each place is called that looks (with the tag), and that is seen."""
        keys = self.tokenizer.name_words(words)
        queries = list(keys)
        for place, tag in zip(self.encode(words)[1], tags, strict=True):
            queries[place] = f"{keys[place]}  {tag}"
        return queries, keys

    def config(self):
        """Return the entry in the manifest: all that an app needs to repeat the preprocessing."""
        config = {**self.describe_tokenizer(), "labels": LABELS, "split": self.pattern}
        if not self.reads_words:
            return config
        return config | {
            "characters": CHARACTERS if self.characters else None,
            "word_length": self.word_length,
            "longer_words": LONGER_WORDS,
            "lowercase_characters": False,
        }

    def parts(self):
        characters = {} if self.characters is None else {CHARACTERS: self.characters}
        return {LABELS: self.labels, **characters, **super().parts()}

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        config, tokenizer = cls.load_tokenizer(folder)
        # How texts are split is said for the tagger, and not for its vocabulary.
        pattern, labels = config.pattern("split", default=None), Labels.load(config.file("labels"))
        if not isinstance(tokenizer, Vocabulary):
            return cls(tokenizer, labels, pattern=pattern)
        return cls(
            dataclasses.replace(tokenizer, pattern=None), labels, *load_spelling(config), pattern
        )


def load_spelling(config):
    """Return (`Vocabulary` of characters or None, how many of a word are read) of a manifest."""
    characters = config.file("characters", default=None)
    return (
        Vocabulary.load(characters) if characters else None,
        config.whole("word_length", most=MOST_CHARACTERS),
    )


def spell(tokens, characters, word_length):
    """Character ids (T, C) of tokens (T,) by a `Vocabulary`, 0 after the end of a word."""
    end = word_length // 2
    shown = [
        token
        if len(token) <= word_length
        else token[: word_length - end] + token[len(token) - end :]
        for token in tokens
    ]
    return pad_rows([characters.ids(token) for token in shown], length=word_length)


def place_labels(examples, preprocessor):
    """Return the `Columns` of `TaggerPreprocessor.columns`."""
    words = [example.tokens for example in examples]
    if isinstance(examples[0], ConstituencyTree):
        rows = [preprocessor.encode(tokens)[0] for tokens in words]
        inputs = preprocessor.as_columns(rows, words)
        inputs = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        targets = [encode_tree(tree, preprocessor.labels) for tree in examples]
        inputs["target_ids"] = Ragged([ids[:-1] for ids in targets], PADDING_ID)
        labels = Ragged([ids[1:] for ids in targets], -1)
        return Columns(inputs, labels, lengths=[len(ids) - 1 for ids in targets])
    of_trees = isinstance(examples[0], DependencyTree)
    tags = [example.relations if of_trees else example.tags for example in examples]
    check_tags(words, tags, preprocessor.labels)
    rows, labels = [], []
    for tokens, names in zip(words, tags, strict=True):
        ids, positions = preprocessor.encode(tokens)
        row = np.full(len(ids), -1, "int32")
        row[positions] = preprocessor.labels.ids(names)
        rows.append(ids)
        labels.append(row)
    labels = Ragged(labels, -1)
    if of_trees:
        heads = Ragged([tree.heads for tree in examples], -1)
        labels = {"arc_scores": heads, "label_scores": labels}
    return Columns(preprocessor.as_columns(rows, words), labels, lengths=list(map(len, rows)))


def check_tags(words, tags, labels):
    """Refuses a tag that is no label, and says where it stands.

    Args:
        words, tags: lists of lists of str, those of each sentence.
    """
    names = set(labels.names)
    for number, sentence in enumerate(zip(words, tags, strict=True), start=1):
        for token, tag in zip(*sentence, strict=True):
            if tag not in names:
                raise ValueError(
                    f"Sentence {number} tags {token!r} as {tag!r}, which is not among the labels: "
                    f"{', '.join(labels.names)}."
                )
