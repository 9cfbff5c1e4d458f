"""`SpellingReader`: base of preprocessors for models that may read the characters of each word."""

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Ragged, number_tokens, pad_rows
from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.tokenizers.vocabulary import Vocabulary

CHARACTERS = "characters.txt"
LONGER_WORDS = "the first word_length - word_length // 2 characters and the last word_length // 2"
MOST_CHARACTERS = 1 << 10  # maximum word_length


class SpellingReader(TokenizerOwner):
    """Base class of preprocessors for words, with their characters as an optional second input.

    Subclasses are dataclasses with these fields.

    Attributes:
        characters: `Vocabulary` of characters, or None for a model that does not read spelling.
        word_length: int C, the number of characters in a word that the model reads.
    """

    def check_spelling(self):
        """Validate `characters` and `word_length`."""
        name = type(self).__name__
        check_whole_number(name, "word_length", self.word_length, most=MOST_CHARACTERS)
        if self.characters is not None and not self.reads_words:
            raise ValueError(
                f"{name}(characters=...) needs a vocabulary of words. Leave it out for a "
                "checkpoint."
            )

    def spell(self, tokens):
        """Return the character ids (T, C) of tokens, a list of T str.

        Ids after the end of a word are 0. The middle of a word with more than C characters is
        dropped.
        """
        end = self.word_length // 2
        start = self.word_length - end
        short = [
            token if len(token) <= self.word_length else token[:start] + token[len(token) - end :]
            for token in tokens
        ]
        return pad_rows([self.characters.ids(token) for token in short], length=self.word_length)

    def spell_batch(self, rows, length):
        """Return the character ids (B, T, C) of tokens, padded with 0 to T = `length`.

        `rows` are B lists of tokens, each a str. C is `word_length`, the number of characters of a
        token.
        """
        letters = [self.spell(tokens) for tokens in rows]
        return pad_rows(letters, length=length, shape=(self.word_length,))

    def spell_column(self, rows):
        """Return a column for `Columns` with the character ids of each token.

        `rows` is a list of lists of tokens (str), one list for each example.
        """
        tokens, numbers = number_tokens(rows)
        return Ragged(numbers, 0, self.spell(tokens))

    def describe_spelling(self):
        """Return the entries of `manifest.json` on characters, for `load_spelling` and apps."""
        return {
            "characters": CHARACTERS if self.characters else None,
            "word_length": self.word_length,
            "longer_words": LONGER_WORDS,
        }

    def parts(self):
        characters = {} if self.characters is None else {CHARACTERS: self.characters}
        return {**characters, **super().parts()}


def load_spelling(config):
    """Return `characters` and `word_length` from `config`, an entry of `manifest.json`."""
    file = config.file("characters", default=None)
    word_length = config.whole("word_length", most=MOST_CHARACTERS)
    return Vocabulary.load(file) if file else None, word_length
