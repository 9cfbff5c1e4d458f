"""`Vocabulary` and `Labels`: words and labels to ids and back. `split_words`: strings to words.

`Vocabulary` uses NumPy and a text file. `keras.layers.StringLookup` returns the same ids, but it
needs TensorFlow and takes a millisecond instead of microseconds for a sentence. It also maps a
token that reads `<pad>` to the padding id, so that the token is masked.
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
    """Split a string at spaces and around punctuation. `3.5`, `e-mail` and `don't` stay whole.

    Return a list of str. Combining marks stay with their letter, and an emoji that consists of
    several characters is one word. The rule is meant for scripts that put spaces between words. For
    the best scores, use the same tokenization as in the training data. For example, treebanks split
    `don't` into `do` and `n't`.

    Args:
        text: str, the string to split.
        pattern: str, a regular expression without capturing groups that matches words. None uses
            the rule above. Raise a ValueError for an unsupported pattern.

    ```python
    import keras_attention as ka

    assert ka.data.split_words("Wait... it's 3.5%!") == ["Wait", "...", "it's", "3.5", "%", "!"]
    assert ka.data.split_words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert ka.data.split_words("3.5% of it", "[^ ]+") == ["3.5%", "of", "it"]
    ```
    """
    return [word for word, _ in find_words(text, pattern)]


def find_words(text, pattern=None):
    """Split a string into words, and return a list of (word, (start, end)).

    `text[start:end]` is the word. `pattern` is the regular expression of a word. None uses the rule
    of `split_words`.
    """
    pattern = check_pattern("split_words", pattern)
    matches = re.finditer(pattern, text)  # `re` has a cache of compiled patterns
    return [(match.group(), match.span()) for match in matches]


PADDING, UNKNOWN = "<pad>", "<unk>"


@dataclasses.dataclass(frozen=True, repr=False)
class Vocabulary:
    """A list of words or characters, which have ids. Id 0 is padding, and 1 is anything unknown.

    Args:
        entries: tuple of str, the entry of every id, starting with `<pad>` and `<unk>`.
        lowercase: bool, whether to lower-case words before they are looked up.
        pattern: str, a regular expression without capturing groups that matches the words in a
            string. None uses the rule of `ka.data.split_words`.

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
                f"A vocabulary begins with {PADDING} and {UNKNOWN}, ids 0 and 1, "
                f"but this one with {', '.join(map(repr, self.entries[:2]))}."
            )
        check_entries(self.entries)

    @classmethod
    def build(cls, tokens, *, min_count=1, max_size=None, lowercase=False, pattern=None):
        """Make a vocabulary that contains the tokens of the training split.

        Args:
            tokens: iterable of str. For a vocabulary of characters, pass characters, for example
                one str.
            min_count: int. Tokens that occur less often are treated as unknown.
            max_size: int, the maximum number of ids, including padding and unknown. The most
                frequent tokens are kept. None for no limit.
            lowercase: bool, whether to ignore case.
            pattern: str, a regular expression that matches words, for `split`. None uses the rule
                of `ka.data.split_words`.
        """
        if max_size is not None:
            check_whole_number("Vocabulary.build", "max_size", max_size, least=2)
        counts = collections.Counter((t.lower() for t in tokens) if lowercase else tokens)
        special = ("", PADDING, UNKNOWN)
        entries = [t for t, n in counts.items() if n >= min_count and t not in special]
        entries = [t for t in entries if "\n" not in t]  # must fit on one line of the file
        entries.sort(key=lambda t: (-counts[t], t))
        return cls((PADDING, UNKNOWN, *entries)[:max_size], lowercase, pattern)

    def __len__(self):
        return len(self.entries)

    @property
    def vocabulary_size(self):
        """int, the number of ids."""
        return len(self)

    def split(self, text, max_length=None):
        """Return the first `max_length` words of `text`, a list of str. None returns all words.

        Raise a ValueError if the text has no words.
        """
        words = split_words(text, self.pattern)[:max_length]
        if not words:
            raise ValueError(f"{text[:40]!r} holds no word.")
        return words

    def count(self, text):
        """Return the number of words in `text`, a str."""
        return len(split_words(text, self.pattern))

    def encode_text(self, text, max_length=None):
        """Return the int32 ids (T,) of the first `max_length` words of `text`. None reads all."""
        return self.ids(self.split(text, max_length))

    def encode_words(self, words, *, max_length=None):
        """Return the int32 ids (T,) of a list of words, and the index of each word's first id.

        The index of word k is k, because each word has one id. `max_length` has no effect.
        """
        return self.ids(words), np.arange(len(words))

    def encode_spans(self, text):
        """Return (ids, spans) of `text`. `spans` (n, 2) are the (start, end) of each word."""
        words = find_words(text, self.pattern)
        spans = np.array([span for _, span in words], "int64").reshape(-1, 2)
        return self.ids([word for word, _ in words]).tolist(), spans

    def name_words(self, words):
        """Return the words unchanged, as a list of str."""
        return list(words)

    def pieces(self, ids):
        """Return the entry of each id in `ids` (T,), a list of str."""
        return [self.entries[i] for i in ids]

    def ids(self, tokens):
        """Return the int32 ids (T,) of a list of tokens."""
        tokens = [t.lower() for t in tokens] if self.lowercase else tokens
        return np.fromiter((self._ids.get(t, 1) for t in tokens), "int32", len(tokens))

    @functools.cached_property
    def _ids(self):
        # A token that reads `<pad>` is unknown, not padding, so that it is not masked.
        return {entry: i for i, entry in enumerate(self.entries) if i != 0}

    def save(self, path):
        """Write the entries to the file `path`, one on each line, in the order of the ids."""
        write_entries(path, self.entries)

    @classmethod
    def load(cls, path, lowercase=False, pattern=None):
        """Load a vocabulary from the file `path`, which `save` wrote.

        Pass `lowercase` and `pattern` again, because they are not in the file.
        """
        with prefix_errors(path):
            return cls(read_entries(path), lowercase, pattern)

    def __repr__(self):
        return f"Vocabulary({len(self)} entries, lowercase={self.lowercase})"


@dataclasses.dataclass(frozen=True)
class Labels:
    """The names of a model's classes. Id -1 has no name, and marks positions to ignore.

    `len`, iteration, `in` and indexing work as for a tuple of the names.

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

    @classmethod
    def of(cls, labels):
        """Return `labels`, a `Labels`, or make a `Labels` from a list of names."""
        return labels if isinstance(labels, cls) else cls(labels)

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        return iter(self.names)

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, index):
        return self.names[index]

    def index(self, name):
        """Return the id of the label `name`. Raise a ValueError if the label is unknown."""
        return int(self.ids([name])[0])

    def ids(self, tags):
        """Return the int32 ids (T,) of `tags`, a list of labels.

        Raise a ValueError if a label is unknown.
        """
        try:
            return np.fromiter((self._ids[tag] for tag in tags), "int32", len(tags))
        except KeyError as error:
            raise ValueError(
                f"The label {error.args[0]!r} is not among the labels: {', '.join(self.names)}. "
                "Correct it, or train a model with examples of it."
            ) from error

    def encode_sets(self, sets):
        """Encode n sets of labels as float32 (n, len(self)): 1 for a label in the set, else 0."""
        encoded = np.zeros((len(sets), len(self)), "float32")
        for row, names in zip(encoded, sets, strict=True):
            row[self.ids(names)] = 1.0
        return encoded

    @functools.cached_property
    def _ids(self):
        return {name: i for i, name in enumerate(self.names)}

    def save(self, path):
        """Write the labels to the file `path`, one on each line, in the order of the ids."""
        write_entries(path, self.names)

    @classmethod
    def load(cls, path):
        """Load labels from the file `path`, which `save` wrote.

        Raise a ValueError if the file is empty.
        """
        entries = read_entries(path)
        if not entries:
            raise ValueError(f"{path} is empty: expected a label on each line.")
        with prefix_errors(path):
            return cls(entries)


def sort_labels(names):
    """Return the distinct names in order: numbers by value (2 before 10), followed by words."""

    def key(name):
        digits = name.lstrip("0") if name.isascii() and name.isdigit() else None
        return (digits is None, len(digits or ""), digits or "", name)

    return sorted(set(names), key=key)


def check_entries(entries):
    """Raise a ValueError if entries repeat or cannot be a line in a text file."""
    if twice := [entry for entry, n in collections.Counter(entries).items() if n > 1]:
        raise ValueError(f"Entries must differ: {', '.join(map(repr, twice[:5]))} occurs twice.")
    if wrong := [entry for entry in entries if not entry or "\n" in entry]:
        raise ValueError(f"The entry {wrong[0]!r} cannot be a line of a text file.")


def write_entries(path, entries):
    """Write each of `entries` as a line of the file `path`, and replace an old file at the end."""
    write_whole(path, "".join(f"{entry}\n" for entry in entries).encode("utf-8"))


def read_entries(path):
    content = read_bytes(path)
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text.") from error
    return tuple(lines[:-1] if lines[-1] == "" else lines)
