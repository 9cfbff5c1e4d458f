"""`Characters` and `Words`: texts to ids and back by a list of what there is."""

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
    """What tokenizers share that are a list of entries, one for each id."""

    entries: tuple

    def __len__(self):
        return len(self.entries)

    def check_entries(self, kind, known):
        """Refuses entries that do not begin with the special ones, or are there twice."""
        if self.entries[:4] != SPECIAL:
            raise ValueError(
                f"{kind} begin with {', '.join(SPECIAL)}, ids 0 to 3; these begin with "
                f"{', '.join(map(quote_value, self.entries[:4])) or 'nothing'}."
            )
        if twice := [c for c, n in collections.Counter(known).items() if n > 1]:
            raise ValueError(f"Entries must differ; {twice[0]!r} is there more than once.")

    def pieces(self, ids):
        """Return the entries that `ids` (T,) stand for, as a list of str."""
        return [self.entries[i] for i in check_ids(np.asarray(ids).tolist(), len(self))]

    def decode_pieces(self, row):
        """Those of `row`, ids (T,), up to END; U+FFFD, the replacement character, if unknown."""
        ids = check_ids(cut_at_end(row), len(self))
        return ["\ufffd" if i == UNKNOWN_ID else self.entries[i] for i in ids]

    @functools.cached_property
    def _ids(self):
        return {entry: i for i, entry in enumerate(self.entries) if i >= len(SPECIAL)}

    def save(self, path):
        """Writes the entries as a list in JSON, in the order of the ids."""
        write_json(path, list(self.entries))

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        entries = read_json(path)
        if not isinstance(entries, list):
            raise ValueError(f"{path} holds no list of {cls.__name__.lower()}.")
        with prefix_errors(path):
            return cls(entries)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} entries)"


@dataclasses.dataclass(frozen=True, repr=False)
class Characters(Entries):
    """Characters and their ids: 0 is padding, 1 everything unknown, 2 BEGIN and 3 END.

    A character is a Unicode code point: spaces, line ends and capitals are characters like any.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`, then
            `[MASK]` or not, and then one character each.

    ```python
    import keras_attention as ka

    characters = ka.data.Characters.build(["4 mars", "2 maj"])
    ids = characters.encode(["2 mars", "mai"])
    assert [len(row) for row in ids] == [6, 3] and ids[1][2] == 1  # no i in what it was built of
    assert characters.decode(ids) == ["2 mars", "ma\ufffd"]
    ```
    """

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        known = self.entries[5 if self.mask_token_id else 4 :]
        if wrong := [c for c in known if not isinstance(c, str) or len(c) != 1]:
            raise ValueError(f"The entry {quote_value(wrong[0])} is not one character.")
        self.check_entries("Characters", known)

    @classmethod
    def build(cls, texts, *, max_size=None, mask_token=False):
        """Return the characters of `texts`, the most frequent first: take the training part only.

        Args:
            texts: iterable of str.
            max_size: int, the most ids, the special ones included; rarer characters are unknown.
            mask_token: bool, whether the id 4 is that of `[MASK]`, for masked language models.
        """
        special = (*SPECIAL, MASK_TOKEN) if mask_token else SPECIAL
        if max_size is not None:
            check_whole_number("Characters.build", "max_size", max_size, least=len(special))
        counts = collections.Counter()
        for text in check_texts("Characters.build", texts):
            counts.update(text)
        ordered = sorted(counts, key=lambda c: (-counts[c], c))
        return cls((*special, *ordered)[:max_size])

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]`, or None where there is none."""
        return MASK_ID if self.entries[MASK_ID : MASK_ID + 1] == (MASK_TOKEN,) else None

    def encode(self, texts):
        """Return a list of int32 ids (T,) for each of `texts`, a list of str; no BEGIN and no END.

        Where `[MASK]` has an id, it is one token.
        """
        return [self._encode(text) for text in check_texts("Characters.encode", texts)]

    def _encode(self, text):
        if self.mask_token_id is None:
            return np.fromiter((self._ids.get(c, 1) for c in text), "int32", len(text))
        parts = (part if part == MASK_TOKEN else [*part] for part in _MASK.split(text))
        tokens = [token for part in parts for token in ([part] if part == MASK_TOKEN else part)]
        return np.fromiter((self._ids.get(token, 1) for token in tokens), "int32", len(tokens))

    def decode(self, rows):
        """Return the text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        Unknown characters become U+FFFD, the replacement character.
        """
        return ["".join(self.decode_pieces(row)) for row in rows]


@dataclasses.dataclass(frozen=True, repr=False)
class Words(Entries):
    """Words between spaces, and their ids: 0 is padding, 1 everything unknown, 2 BEGIN and 3 END.

    For texts of few different words, such as `ka.data.describe_objects` writes. Signs belong to the
    word that they stand at.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`, then a
            word each.

    ```python
    import keras_attention as ka

    words = ka.data.Words.build(["a red cell", "a white cell"])
    (ids,) = words.encode(["a blue  cell"])
    assert ids.tolist() == [4, 1, 5] and words.decode([ids]) == ["a \\ufffd cell"]
    ```
    """

    mask_token_id = None

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        known = self.entries[4:]
        if wrong := [x for x in known if not isinstance(x, str) or x.split() != [x]]:
            raise ValueError(f"The entry {quote_value(wrong[0])} is not one word.")
        self.check_entries("Words", known)

    @classmethod
    def build(cls, texts, *, max_size=None):
        """Return the words of `texts`, the most frequent first: take the training part only.

        Args:
            texts: iterable of str.
            max_size: int, the most ids, the special ones included; rarer words are unknown.
        """
        if max_size is not None:
            check_whole_number("Words.build", "max_size", max_size, least=len(SPECIAL))
        counts = collections.Counter()
        for text in check_texts("Words.build", texts):
            counts.update(text.split())
        ordered = sorted(counts.keys() - set(SPECIAL), key=lambda c: (-counts[c], c))
        return cls((*SPECIAL, *ordered)[:max_size])

    def encode(self, texts):
        """Return a list of int32 ids (T,) for each of `texts`, a list of str.

        No BEGIN and no END.
        """
        rows = [text.split() for text in check_texts("Words.encode", texts)]
        return [np.array([self._ids.get(x, UNKNOWN_ID) for x in row], "int32") for row in rows]

    def decode(self, rows):
        """Return the text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        Words are parted by one space; unknown ones become U+FFFD, the replacement character.
        """
        return [" ".join(self.decode_pieces(row)) for row in rows]
