"""`Vocabulary` and `Labels`: words and labels to ids and back; and text to words.

`Vocabulary` is NumPy and a text file, and not `keras.layers.StringLookup`, whose ids are the same:
that needs TensorFlow, takes a millisecond for a sentence where a dictionary takes microseconds, and
gives a token that reads `<pad>` the id of padding, so that it is masked.
"""

import collections
import dataclasses
import functools
import re

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.files.io import prefix_errors, read_bytes, write_whole
from keras_attention.files.word_pattern import check_pattern


def split_words(text, pattern=None):
    """Splits at spaces and around punctuation; `3.5`, `e-mail` and `don't` stay whole.

    Combining marks stay with their letter, and an emoji of several characters is one word. For
    scripts that are written with spaces. Where scores matter, use the tokens of the data the
    model was trained on: treebanks also split words, such as `don't` into `do` and `n't`.

    Args:
        text: str.
        pattern: str, a regular expression without capturing groups, whose matches are the words,
            such as `split` of a manifest. None stands for the rule above.

    Returns:
        A list of str. A `pattern` of another kind is a ValueError.

    ```python
    import keras_attention as ka

    assert ka.data.split_words("Wait... it's 3.5%!") == ["Wait", "...", "it's", "3.5", "%", "!"]
    assert ka.data.split_words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert ka.data.split_words("3.5% of it", "[^ ]+") == ["3.5%", "of", "it"]
    ```
    """
    return [word for word, _ in find_words(text, pattern)]


def find_words(text, pattern=None):
    """Return the words that `split_words` gives, each with its characters (start, end) of the
    text.
    """
    pattern = check_pattern("split_words", pattern)
    matches = re.finditer(pattern, text)  # `re` has a cache of compiled patterns
    return [(match.group(), match.span()) for match in matches]


PADDING, UNKNOWN = "<pad>", "<unk>"


@dataclasses.dataclass(frozen=True, repr=False)
class Vocabulary:
    """Words, or characters, and their ids: 0 is padding, 1 is everything unknown.

    Args:
        entries: tuple of str, the entry of every id, `<pad>` and `<unk>` first.
        lowercase: bool, whether words are lower-cased before they are looked up.
        pattern: str, a regular expression without capturing groups, whose matches are the words of
            a text. None stands for that of `ka.data.split_words`.

    ```python
    import keras_attention as ka

    words = ka.data.Vocabulary.build("the cat and the Dog".split(), lowercase=True)
    assert words.entries == ("<pad>", "<unk>", "the", "and", "cat", "dog")
    assert words.ids(["The", "cow"]).tolist() == [2, 1]
    ```
    """

    entries: tuple
    lowercase: bool = False
    pattern: str | None = None
    padding_id, unit, max_length, has_segments = 0, "words", None, False

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        object.__setattr__(self, "pattern", check_pattern("Vocabulary", self.pattern))
        if self.entries[:2] != (PADDING, UNKNOWN):
            raise ValueError(
                f"A vocabulary begins with {PADDING} and {UNKNOWN}, ids 0 and 1; "
                f"this one begins with {', '.join(map(repr, self.entries[:2]))}."
            )
        check_entries(self.entries)

    @classmethod
    def build(cls, tokens, *, min_count=1, max_size=None, lowercase=False, pattern=None):
        """Return the vocabulary of `tokens`, an iterable of str.

        Take them from the training part only.

        Args:
            tokens: iterable of str; the characters of a str are such an iterable too.
            min_count: int, rarer ones are unknown.
            max_size: int, the most ids, padding and unknown included; the most frequent stay.
            lowercase: bool, whether case is ignored.
            pattern: str, or None, as in the constructor.
        """
        if max_size is not None:
            check_whole_number("Vocabulary.build", "max_size", max_size, least=2)
        counts = collections.Counter((t.lower() for t in tokens) if lowercase else tokens)
        special = ("", PADDING, UNKNOWN)
        entries = [t for t, n in counts.items() if n >= min_count and t not in special]
        entries = [t for t in entries if "\n" not in t]  # each has a line of its own
        entries.sort(key=lambda t: (-counts[t], t))
        return cls((PADDING, UNKNOWN, *entries)[:max_size], lowercase, pattern)

    def __len__(self):
        return len(self.entries)

    @property
    def vocabulary_size(self):
        """int, how many ids there are."""
        return len(self)

    def split(self, text, max_length=None):
        """Return the first words of a text, as str; a ValueError if there is none."""
        words = split_words(text, self.pattern)[:max_length]
        if not words:
            raise ValueError(f"{text[:40]!r} holds no word.")
        return words

    def count(self, text):
        """Return how many words a text has."""
        return len(split_words(text, self.pattern))

    def encode_text(self, text, max_length=None):
        """Ids int32 (T,) of the first words of a text."""
        return self.ids(self.split(text, max_length))

    def encode_words(self, words, *, max_length=None):
        """Ids int32 (T,) of a text that is split already, and where each word is among them."""
        return self.ids(words), np.arange(len(words))

    def encode_spans(self, text):
        """Return (list of the ids of a text, int (n, 2), the characters from a start to before an
        end).
        """
        words = find_words(text, self.pattern)
        spans = np.array([span for _, span in words], "int64").reshape(-1, 2)
        return self.ids([word for word, _ in words]).tolist(), spans

    def name_words(self, words):
        """Return the tokens of a text that is split already, as str."""
        return list(words)

    def pieces(self, ids):
        """Return the entries that `ids` (T,) stand for, as a list of str."""
        return [self.entries[i] for i in ids]

    def ids(self, tokens):
        """int32 ids of a sequence of str, (T,)."""
        tokens = [t.lower() for t in tokens] if self.lowercase else tokens
        return np.fromiter((self._ids.get(t, 1) for t in tokens), "int32", len(tokens))

    @functools.cached_property
    def _ids(self):
        # A token that reads like the padding is a token, and must not be masked.
        return {entry: i for i, entry in enumerate(self.entries) if i != 0}

    def save(self, path):
        """Writes one entry a line, in the order of the ids."""
        write_entries(path, self.entries)

    @classmethod
    def load(cls, path, lowercase=False, pattern=None):
        """Reads what `save` wrote. `lowercase` and `pattern` are not in the file."""
        with prefix_errors(path):
            return cls(read_entries(path), lowercase, pattern)

    def __repr__(self):
        return f"Vocabulary({len(self)} entries, lowercase={self.lowercase})"


@dataclasses.dataclass(frozen=True)
class Labels:
    """The names of a model's outputs. Positions to leave out have the id -1, which has no name.

    It has a length, an order, members, indices and slices, as a tuple of its names has.

    Args:
        names: tuple of str, the label of every id.

    ```python
    import keras_attention as ka

    labels = ka.data.Labels(["O", "B-PER"])
    assert labels.ids(["B-PER", "O"]).tolist() == [1, 0] and labels[1] == "B-PER"
    assert list(labels) == ["O", "B-PER"] and "O" in labels
    ```
    """

    names: tuple

    def __post_init__(self):
        object.__setattr__(self, "names", tuple(self.names))
        check_entries(self.names)

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        return iter(self.names)

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, index):
        return self.names[index]

    def index(self, name):
        """Return the id of a label. An unknown one is a ValueError."""
        return int(self.ids([name])[0])

    def ids(self, tags):
        """int32 ids of a sequence of str, (T,). An unknown tag is a ValueError."""
        try:
            return np.fromiter((self._ids[tag] for tag in tags), "int32", len(tags))
        except KeyError as error:
            raise ValueError(
                f"The label {error.args[0]!r} is not among the labels: {', '.join(self.names)}. "
                "Correct it, or train a model with examples of it."
            ) from error

    def encode_sets(self, sets):
        """Zeros and ones float32 (n, L) of n collections of labels. An unknown one is an error."""
        encoded = np.zeros((len(sets), len(self)), "float32")
        for row, names in zip(encoded, sets, strict=True):
            row[self.ids(names)] = 1.0
        return encoded

    @functools.cached_property
    def _ids(self):
        return {name: i for i, name in enumerate(self.names)}

    def save(self, path):
        """Writes one label a line, in the order of the ids."""
        write_entries(path, self.names)

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        entries = read_entries(path)
        if not entries:
            raise ValueError(f"{path} is empty: expected a label on each line.")
        with prefix_errors(path):
            return cls(entries)


def sort_labels(names):
    """Return the different names in order, as a list: 2 before 10, and both before words."""

    def key(name):
        digits = name.lstrip("0") if name.isascii() and name.isdigit() else None
        return (digits is None, len(digits or ""), digits or "", name)

    return sorted(set(names), key=key)


def check_entries(entries):
    """Refuses what could not be read back from one line each, or not be told apart."""
    if twice := [entry for entry, n in collections.Counter(entries).items() if n > 1]:
        raise ValueError(
            f"Entries must differ; {', '.join(map(repr, twice[:5]))} is there more than once."
        )
    if wrong := [entry for entry in entries if not entry or "\n" in entry]:
        raise ValueError(f"The entry {wrong[0]!r} cannot be a line of a text file.")


def write_entries(path, entries):
    """Writes a line for each entry; the file is complete or not there."""
    write_whole(path, "".join(f"{entry}\n" for entry in entries).encode("utf-8"))


def read_entries(path):
    content = read_bytes(path)
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text.") from error
    return tuple(lines[:-1] if lines[-1] == "" else lines)
