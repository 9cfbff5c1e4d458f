"""`Characters` and `Words`: tokenizers that look tokens up in a list of entries."""

import collections
import dataclasses
import functools
import re

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.tokenizers.subwords import (
    MASK_ID,
    MASK_TOKEN,
    SPECIAL,
    UNKNOWN_ID,
    OwnTokenizer,
    check_ids,
    check_texts,
    cut_at_end,
)
from keras_attention.files.io import prefix_errors, quote_value, read_json, write_json

_MASK = re.compile(rf"({re.escape(MASK_TOKEN)})")


@dataclasses.dataclass(frozen=True, repr=False)
class Entries(OwnTokenizer):
    """Base class of tokenizers whose vocabulary is a list of entries (characters or words).

    Subclasses define `split`, which splits a string into entries, and the inverse, `join`.
    """

    entries: tuple

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        name, own = type(self).__name__, self.entries[5 if self.mask_token_id else 4 :]
        if wrong := [x for x in own if not isinstance(x, str) or self.split(x) != [x]]:
            raise ValueError(f"The entry {quote_value(wrong[0])} is not one {name[:-1].lower()}.")
        if self.entries[:4] != SPECIAL:
            raise ValueError(
                f"{name} begin with {', '.join(SPECIAL)}, ids 0 to 3, but these with "
                f"{', '.join(map(quote_value, self.entries[:4])) or 'nothing'}."
            )
        if twice := [c for c, n in collections.Counter(own).items() if n > 1]:
            raise ValueError(f"Entries must differ: {twice[0]!r} occurs twice.")

    @classmethod
    def build(cls, texts, *, max_size=None, mask_token=False):
        """Make a tokenizer with the entries that occur in `texts`, the most frequent first.

        Args:
            texts: iterable of str, only the training split.
            max_size: int, the maximum number of ids, including special ones. Rarer entries are
                treated as unknown. None for no limit.
            mask_token: bool, whether to reserve id 4 for `[MASK]`, for masked language models.
        """
        special, caller = (*SPECIAL, MASK_TOKEN) if mask_token else SPECIAL, f"{cls.__name__}.build"
        if max_size is not None:
            check_whole_number(caller, "max_size", max_size, least=len(special))
        counts = collections.Counter()
        for text in check_texts(caller, texts):
            counts.update(cls.split(text))
        ordered = sorted(counts.keys() - set(SPECIAL), key=lambda c: (-counts[c], c))
        return cls((*special, *ordered)[:max_size])

    def __len__(self):
        return len(self.entries)

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]`, or None if it has no id."""
        return MASK_ID if self.entries[MASK_ID : MASK_ID + 1] == (MASK_TOKEN,) else None

    def encode(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, without begin and end ids.

        `[MASK]` is one token if the tokenizer has an id for it.
        """
        rows = []
        for text in check_texts(f"{type(self).__name__}.encode", texts):
            parts = [text] if self.mask_token_id is None else _MASK.split(text)
            tokens = []
            for part in parts:
                tokens += [part] if part == MASK_TOKEN and len(parts) > 1 else self.split(part)
            ids = (self._ids.get(token, UNKNOWN_ID) for token in tokens)
            rows.append(np.fromiter(ids, "int32", len(tokens)))
        return rows

    def decode(self, rows):
        """Convert `rows`, a list of ids (T,), to a list of str.

        Each row is read up to its end id. Padding and begin ids are skipped. Unknown entries become
        U+FFFD, the replacement character.
        """
        texts = []
        for row in rows:
            ids = check_ids(cut_at_end(row), len(self))
            pieces = ["\ufffd" if i == UNKNOWN_ID else self.entries[i] for i in ids]
            texts.append(self.join(pieces))
        return texts

    def pieces(self, ids):
        """Return the entry of each id in `ids` (T,), a list of str."""
        return [self.entries[i] for i in check_ids(np.asarray(ids).tolist(), len(self))]

    def token_texts(self):
        """Return two lists with the text of each id, after other ids and as the first id.

        A special id has None in place of a text.
        """
        first = [None if i in self.special_ids else x for i, x in enumerate(self.entries)]
        return [x and self.join(["", x]) for x in first], first

    @functools.cached_property
    def _ids(self):
        return {entry: i for i, entry in enumerate(self.entries) if i >= len(SPECIAL)}

    def save(self, path):
        """Write the entries to the file `path` as a JSON list, in the order of their ids."""
        write_json(path, list(self.entries))

    @classmethod
    def load(cls, path):
        """Load a tokenizer from the file `path`, which `save` wrote.

        Raise a ValueError if the file is damaged.
        """
        entries = read_json(path)
        if not isinstance(entries, list):
            raise ValueError(f"{path} is not a list of {cls.__name__.lower()}.")
        with prefix_errors(path):
            return cls(entries)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} entries)"


@dataclasses.dataclass(frozen=True, repr=False)
class Characters(Entries):
    """A tokenizer of characters.

    Id 0 is padding, 1 is an unknown character, 2 begins a text and 3 ends a text.

    A character is a Unicode code point. Spaces, line breaks and capital letters are ordinary
    characters.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`,
            optionally `[MASK]`, followed by one str for each character.

    ```python
    import keras_attention as ka

    characters = ka.data.Characters.build(["4 mars", "2 maj"])
    ids = characters.encode(["2 mars", "mai"])
    assert [len(row) for row in ids] == [6, 3] and ids[1][2] == 1  # i is unknown
    assert characters.decode(ids) == ["2 mars", "ma\ufffd"]
    ```
    """

    split, join = staticmethod(list), staticmethod("".join)


@dataclasses.dataclass(frozen=True, repr=False)
class Words(Entries):
    """A tokenizer of words between spaces.

    Id 0 is padding, 1 is an unknown word, 2 begins a text and 3 ends a text.

    Use this class for text with few distinct words, such as the output of
    `ka.data.describe_objects`. Punctuation is part of the word next to it.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`,
            optionally `[MASK]`, followed by one str for each word.

    ```python
    import keras_attention as ka

    words = ka.data.Words.build(["a red cell", "a white cell"])
    (ids,) = words.encode(["a blue  cell"])
    assert ids.tolist() == [4, 1, 5] and words.decode([ids]) == ["a \\ufffd cell"]
    ```
    """

    split, join = staticmethod(str.split), staticmethod(" ".join)
