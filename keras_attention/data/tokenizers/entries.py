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
    """What tokenizers share that are a list of entries, one for each id.

    A subclass says how texts are split into entries, and how these are joined.
    """

    entries: tuple

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        name, own = type(self).__name__, self.entries[5 if self.mask_token_id else 4 :]
        if wrong := [x for x in own if not isinstance(x, str) or self.split(x) != [x]]:
            raise ValueError(f"The entry {quote_value(wrong[0])} is not one {name[:-1].lower()}.")
        if self.entries[:4] != SPECIAL:
            raise ValueError(
                f"{name} begin with {', '.join(SPECIAL)}, ids 0 to 3; these begin with "
                f"{', '.join(map(quote_value, self.entries[:4])) or 'nothing'}."
            )
        if twice := [c for c, n in collections.Counter(own).items() if n > 1]:
            raise ValueError(f"Entries must differ; {twice[0]!r} is there more than once.")

    @classmethod
    def build(cls, texts, *, max_size=None, mask_token=False):
        """Return one with the entries of `texts`, the most frequent first.

        Args:
            texts: iterable of str, of the training part only.
            max_size: int, the most ids, the special ones included; rarer entries are unknown.
            mask_token: bool, whether the id 4 is that of `[MASK]`, for masked language models.
        """
        special, owner = (*SPECIAL, MASK_TOKEN) if mask_token else SPECIAL, f"{cls.__name__}.build"
        if max_size is not None:
            check_whole_number(owner, "max_size", max_size, least=len(special))
        counts = collections.Counter()
        for text in check_texts(owner, texts):
            counts.update(cls.split(text))
        ordered = sorted(counts.keys() - set(SPECIAL), key=lambda c: (-counts[c], c))
        return cls((*special, *ordered)[:max_size])

    def __len__(self):
        return len(self.entries)

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]`, or None where there is none."""
        return MASK_ID if self.entries[MASK_ID : MASK_ID + 1] == (MASK_TOKEN,) else None

    def encode(self, texts):
        """Return a list of int32 ids (T,) for each of `texts`, a list of str; no BEGIN and no END.

        Where `[MASK]` has an id, it is one token.
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
        """Return the text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        Unknown entries become U+FFFD, the replacement character.
        """
        texts = []
        for row in rows:
            ids = check_ids(cut_at_end(row), len(self))
            pieces = ["\ufffd" if i == UNKNOWN_ID else self.entries[i] for i in ids]
            texts.append(self.join(pieces))
        return texts

    def pieces(self, ids):
        """Return the entries that `ids` (T,) stand for, as a list of str."""
        return [self.entries[i] for i in check_ids(np.asarray(ids).tolist(), len(self))]

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

    split, join = staticmethod(list), staticmethod("".join)


@dataclasses.dataclass(frozen=True, repr=False)
class Words(Entries):
    """Words between spaces, and their ids: 0 is padding, 1 everything unknown, 2 BEGIN and 3 END.

    For texts of few different words, such as `ka.data.describe_objects` writes. Signs belong to the
    word that they stand at.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`, then
            `[MASK]` or not, and then a word each.

    ```python
    import keras_attention as ka

    words = ka.data.Words.build(["a red cell", "a white cell"])
    (ids,) = words.encode(["a blue  cell"])
    assert ids.tolist() == [4, 1, 5] and words.decode([ids]) == ["a \\ufffd cell"]
    ```
    """

    split, join = staticmethod(str.split), staticmethod(" ".join)
