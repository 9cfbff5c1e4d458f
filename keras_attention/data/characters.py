"""Texts to ids of their characters, and back."""

import collections
import dataclasses
import functools

import numpy as np

from keras_attention.checks import whole_number
from keras_attention.data.files import read_json, write_json
from keras_attention.data.special_ids import checked_range, checked_texts, up_to_end

SPECIAL = ("<pad>", "<unk>", "<begin>", "<end>")


@dataclasses.dataclass(frozen=True, repr=False)
class Characters:
    """Characters and their ids: 0 is padding, 1 everything unknown, 2 BEGIN and 3 END.

    A character is a Unicode code point: spaces, line ends and capitals are characters like any.

    Args:
        entries: tuple of str, the entry of every id: `<pad>`, `<unk>`, `<begin>`, `<end>`, and
            then one character each.

    Example:

    ```python
    import keras_attention as ka

    characters = ka.data.Characters.build(["4 mars", "2 maj"])
    ids = characters.encode(["2 mars", "mai"])
    assert [len(row) for row in ids] == [6, 3] and ids[1][2] == 1  # no i in what it was built of
    assert characters.decode(ids) == ["2 mars", "ma\ufffd"]
    ```
    """

    entries: tuple

    def __post_init__(self):
        object.__setattr__(self, "entries", tuple(self.entries))
        if self.entries[:4] != SPECIAL:
            raise ValueError(
                f"Characters begin with {', '.join(SPECIAL)}, ids 0 to 3; these begin with "
                f"{', '.join(map(repr, self.entries[:4]))}."
            )
        known = self.entries[4:]
        if wrong := [c for c in known if not isinstance(c, str) or len(c) != 1]:
            raise ValueError(f"The entry {wrong[0]!r} is not one character.")
        if twice := [c for c, n in collections.Counter(known).items() if n > 1]:
            raise ValueError(f"Entries must differ; {twice[0]!r} is there more than once.")

    @classmethod
    def build(cls, texts, *, max_size=None):
        """The characters of `texts`, the most frequent first: take the training part only.

        Args:
            texts: iterable of str.
            max_size: int, the most ids, the four special ones included; rarer characters are
                unknown.
        """
        if max_size is not None:
            whole_number("Characters.build", "max_size", max_size, least=4)
        counts = collections.Counter()
        for text in checked_texts("Characters.build", texts):
            counts.update(text)
        known = sorted(counts, key=lambda c: (-counts[c], c))
        return cls((*SPECIAL, *known)[:max_size])

    def __len__(self):
        return len(self.entries)

    def encode(self, texts):
        """A list of int32 ids (T,) for each of `texts`, a list of str; no BEGIN and no END."""
        texts = checked_texts("Characters.encode", texts)
        return [np.fromiter((self._ids.get(c, 1) for c in t), "int32", len(t)) for t in texts]

    def decode(self, rows):
        """The text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        What is unknown becomes U+FFFD, the replacement character.
        """
        size = len(self)
        return ["".join(map(self._text, checked_range(up_to_end(r), size))) for r in rows]

    def pieces(self, ids):
        """The entries that `ids` (T,) stand for, as a list of str."""
        return [self.entries[i] for i in checked_range(np.asarray(ids).tolist(), len(self))]

    def _text(self, i):
        return "\ufffd" if i == 1 else self.entries[i]

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
            raise ValueError(f"{path} holds no list of characters.")
        return cls(entries)

    def __repr__(self):
        return f"Characters({len(self)} entries)"
