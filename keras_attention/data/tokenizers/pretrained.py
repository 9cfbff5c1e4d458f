"""`PretrainedTokenizer`: texts as inputs of a checkpoint's model, by the tokenizer beside it."""

import dataclasses
import json
import pathlib

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import pad_rows
from keras_attention.data.tokenizers import engines
from keras_attention.data.tokenizers.subwords import check_texts
from keras_attention.files.fields import MOST_ID, MOST_TOKENS
from keras_attention.files.io import path_inside, prefix_errors, read_bytes, write_whole

TEXT, PAIR = "text", "pair"  # the places of the texts among a template's special tokens


@dataclasses.dataclass(frozen=True)
class StoredFile:
    """The content of a file, bytes, that is written as it was."""

    content: bytes

    def save(self, path):
        write_whole(path, self.content)


@dataclasses.dataclass(frozen=True, repr=False)
class PretrainedTokenizer:
    """Texts to ids, with the special tokens of a checkpoint, and back.

    `ka.pretrained.tokenizer` makes the one of a checkpoint.

    Args:
        kind: `"tokenizer.json"`, `"sentencepiece"`, `"t5"` or `"marian"`, how the files are read.
        files: dict, plain name -> bytes, the files as they are in the checkpoint.
        single, pair: lists of (what, segment), what a text and a pair of texts become: `"text"`,
            `"pair"`, or the id of a special token.
        padding_id: int, what fills short rows up; None where every id is a token.
        has_segments: bool, whether the model reads `"segment_ids"`, too.
        max_length: int, the tokens of a text at most, special ones included; None for no limit.

    `tokenizer.json` is read by the library `tokenizers`. `keras_attention.device` has files for
    apps that give the same ids of WordPiece and of byte-level BPE in plain Python.

    ```python
    import keras_attention as ka

    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s"], lowercase=True
    )
    inputs = tokenizer(["The cats", "cat"])
    assert inputs["token_ids"].tolist() == [[2, 4, 5, 6, 3], [2, 5, 3, 0, 0]]
    assert tokenizer(["cat"], ["the"])["segment_ids"].tolist() == [[0, 0, 0, 1, 1]]
    assert tokenizer.decode(inputs["token_ids"]) == ["the cats", "cat"]
    ```
    """

    kind: str
    files: dict
    single: tuple
    pair: tuple | None = None
    padding_id: int | None = 0
    has_segments: bool = False
    max_length: int | None = None
    unit, vocabulary_size = "subwords", None  # a model may have room for more ids than there are

    def __post_init__(self):
        for name in ("single", "pair"):
            if (template := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(tuple, template)))
        if self.max_length is not None:
            check_whole_number(
                "PretrainedTokenizer", "max_length", self.max_length, most=MOST_TOKENS
            )
        object.__setattr__(self, "engine", engines.make_engine(self.kind, self.files))

    @classmethod
    def from_json(cls, content, **options):
        """Of a `tokenizer.json`, bytes; `options` are `padding_id`, `has_segments`, `max_length`.

        Raises:
            ValueError: it is damaged, or asks for special tokens in a way that is not known.
        """
        single, pair = engines.LibraryEngine(content).read_templates()
        return cls("tokenizer.json", {"tokenizer.json": content}, single, pair, **options)

    @classmethod
    def from_vocabulary(cls, entries, *, lowercase, has_segments=True, **options):
        """BERT's WordPiece of a list of pieces, as in `vocab.txt`.

        Args:
            entries: list of str, the piece of every id.
            lowercase: bool, whether texts are lower-cased and lose their accents.
        """
        content = json.dumps(engines.write_word_piece(entries, lowercase), ensure_ascii=False)
        return cls.from_json(content.encode(), has_segments=has_segments, **options)

    def __len__(self):
        return self.engine.size

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]` or `<mask>`, or None where there is none."""
        return self.engine.mask_id

    @property
    def mask_token(self):
        """str, how it spells its mask; None where it has none."""
        return None if self.mask_token_id is None else self.engine.name(self.mask_token_id)

    @property
    def special_ids(self):
        """frozenset of ints, the ids of special tokens and of padding."""
        padding = () if self.padding_id is None else (self.padding_id,)
        return frozenset({*self.engine.special_ids, *padding})

    @property
    def around(self):
        """Return the ids of special tokens before and after a text, two tuples."""
        whats = [part for part, _ in self.single]
        place = whats.index(TEXT)
        return tuple(whats[:place]), tuple(whats[place + 1 :])

    def encode_plain(self, text):
        """Return the ids of a text of any length, without special tokens around it."""
        return self.engine.encode(text)

    def encode_sources(self, texts):
        """Return int32 ids (T,) of each text that an encoder reads, special tokens included."""
        return [np.array(row, "int32") for row in self.encode(texts)]

    def name_tokens(self, ids):
        """Return the pieces that `ids` (T,) stand for, as it writes them: a list of str."""
        return self.pieces(ids)

    def encode_targets(self, texts):
        """Like `encode`, of texts that the model writes: Marian has other pieces for them."""
        encode = getattr(self.engine, "encode_target", self.engine.encode)
        texts = check_texts("PretrainedTokenizer", texts)
        return [_place(self.single, {TEXT: encode(text)})[0] for text in texts]

    def encode(self, texts, pairs=None, *, max_length=None):
        """Return a list of ids for each text, special tokens included; what is too long is cut.

        Args:
            texts: list of str. pairs: list of as many str, the second text of each; or None.
            max_length: int, the tokens of a text (or of a pair) at most; None for the tokenizer's.
        """
        return [ids for ids, _ in self._encode(texts, pairs, max_length)]

    def __call__(self, texts, pairs=None, *, max_length=None):
        """Return the inputs of the model.

        Int32 ids (B, T), or a dict with `"segment_ids"` (B, T), too.

        Args: as for `encode`.

        Raises:
            ValueError: rows differ in length, and no id is padding: use `encode`.
        """
        rows = self._encode(texts, pairs, max_length)
        ids = self.stack([ids for ids, _ in rows])
        if not self.has_segments:
            return ids
        return {"token_ids": ids, "segment_ids": pad_rows([row for _, row in rows])}

    def stack(self, rows, length=None):
        """int32 ids (B, T) of lists of ids, with padding after the shorter ones.

        Args:
            length: int T; None for that of the longest.
        """
        lengths = {len(row) for row in rows} | ({length} if length else set())
        if self.padding_id is None and len(lengths) > 1:
            raise ValueError(
                f"Texts of {min(lengths)} to {max(lengths)} tokens, and every id is a token to "
                "this model: none fills short ones up. Use encode(), whose lists generate() takes."
            )
        return pad_rows(rows, self.padding_id or 0, length)

    def encode_words(self, words, *, max_length=None):
        """Return the ids of a text that is split into words already, and where each word begins.

        Args:
            words: list of str.
            max_length: int, the tokens at most; None for the tokenizer's. More is an error.

        Returns:
            (list of int ids, special ones included; list of the index of each word's first). A word
            that has no piece, such as one of control characters, becomes the unknown one.
        """
        ids, positions = [], []
        for word in words:
            pieces = self.engine.encode(f" {word}" if self.engine.begins_words else word)
            positions.append(len(ids))
            ids += pieces or [self.engine.unknown_id or 0]
        before = [part for part, _ in self.single].index(TEXT)
        ids, _ = _place(self.single, {TEXT: ids})
        limit = max_length or self.max_length
        if limit is not None and len(ids) > limit:
            raise ValueError(
                f"The sentence has {len(ids)} pieces of words, over this model's limit of {limit}: "
                f"{' '.join(words)[:40]!r}... Split it."
            )
        return ids, [before + place for place in positions]

    def encode_text(self, text, max_length=None):
        """Ids int32 (T,) of one text, special tokens included."""
        return np.array(self.encode([text], max_length=max_length)[0], "int32")

    def split(self, text, max_length=None):
        """Return the pieces that `encode_text` gives, as str."""
        return self.pieces(self.encode_text(text, max_length))

    def count(self, text):
        """Return how many tokens a text has, special ones included."""
        return len(self.encode([text], max_length=MOST_TOKENS)[0])

    def name_words(self, words):
        """Return the pieces that `encode_words` gives, as str."""
        return self.pieces(self.encode_words(words)[0])

    def encode_spans(self, text):
        """Return the ids of one text without special tokens, and where each is in it.

        Returns:
            (list of int; int (n, 2), the characters from a start to before an end that an id is
            made of, without the spaces beside them).
        """
        if not hasattr(self.engine, "encode_spans"):
            raise ValueError(f"A tokenizer of kind {self.kind} does not say where its tokens are.")
        ids, spans = self.engine.encode_spans(text)
        spans = [_strip(text, *span) for span in spans]
        return list(ids), np.array(spans, "int64").reshape(-1, 2)

    def decode(self, ids, *, special=False):
        """Return the texts of ids, a list of str.

        Args:
            ids: int (B, T), or lists of ids. special: bool, whether special tokens are shown.
        """
        rows = [[int(i) for i in row if i != self.padding_id] for row in ids]
        return [self.engine.decode(row, special) for row in rows]

    def pieces(self, ids):
        """Return the pieces that `ids` (T,) stand for, as a list of str."""
        return [self.engine.name(int(i)) for i in ids]

    def _encode(self, texts, pairs, max_length):
        """Return (ids, segments) of each text, lists of int."""
        texts, limit = check_texts("PretrainedTokenizer", texts), max_length or self.max_length
        if pairs is None:
            room = self._find_room(self.single, limit)
            return [_place(self.single, {TEXT: self.engine.encode(text)[:room]}) for text in texts]
        pairs = check_texts("PretrainedTokenizer", pairs)
        if len(pairs) != len(texts):
            raise ValueError(f"{len(texts)} texts and {len(pairs)} pairs: expected as many.")
        if self.pair is None:
            raise ValueError("This tokenizer's model reads no pairs: join the texts yourself.")
        room, rows = self._find_room(self.pair, limit), []
        for text, other in zip(texts, pairs, strict=True):
            first, second = self.engine.encode(text), self.engine.encode(other)
            a, b = share_room(len(first), len(second), room)
            rows.append(_place(self.pair, {TEXT: first[:a], PAIR: second[:b]}))
        return rows

    def _find_room(self, template, limit):
        """Return how many tokens of text a limit leaves, or None."""
        if limit is None:
            return None
        special = sum(part not in (TEXT, PAIR) for part, _ in template)
        if limit <= special:
            raise ValueError(
                f"max_length={limit}: {special} of the tokens are special, which leaves none "
                f"for the text. Give at least {special + 1}."
            )
        return limit - special

    def config(self):
        """Return the entry in a manifest: all that an app needs to do the same."""
        return {
            "kind": self.kind,
            "files": list(self.files),
            "text": [list(part) for part in self.single],
            "pair": self.pair and [list(part) for part in self.pair],
            "padding_id": self.padding_id,
            "has_segments": self.has_segments,
            "max_length": self.max_length,
        }

    def parts(self):
        """{name: what has a `save`} of the files, which are written as they were."""
        return {name: StoredFile(content) for name, content in self.files.items()}

    @classmethod
    def load(cls, folder, fields):
        """Reads the files of `parts`.

        Args:
            folder: path of the folder that they are in.
            fields: `Fields` of what `config` gave.
        """
        files, folder = {}, pathlib.Path(folder)
        for name in fields.texts("files"):
            files[name] = read_bytes(path_inside(folder, name, fields.owner("files")))
        with prefix_errors(folder):
            return cls(
                fields.one_of("kind", [*engines.KINDS]),
                files,
                _read_template(fields, "text"),
                None if fields.values.get("pair") is None else _read_template(fields, "pair"),
                fields.whole("padding_id", least=0, most=MOST_ID, default=None),
                fields.flag("has_segments"),
                fields.whole("max_length", most=MOST_TOKENS, default=None),
            )

    def __repr__(self):
        return f"PretrainedTokenizer({self.kind}, {len(self)} entries)"


def _read_template(fields, name):
    """Return a template that a manifest holds."""
    parts = fields.values.get(name)
    names = [TEXT] if name == "text" else [TEXT, PAIR]
    try:
        template = tuple((what, segment) for what, segment in parts)
        right = sorted(w for w, _ in template if isinstance(w, str)) == sorted(names)
        numbers = [x for part in template for x in part if not isinstance(x, str)]
        right = right and all(type(x) is int and 0 <= x <= MOST_ID for x in numbers)
    except (TypeError, ValueError):
        right = False
    if not right:
        raise fields.error(name, f"a list of [{' or '.join(names)} or an id, segment]")
    return template


def _place(template, texts):
    """Return (ids, segments) of texts, {place: ids}, with the special tokens of a template."""
    parts = [(texts[w] if isinstance(w, str) else [w], segment) for w, segment in template]
    ids = [i for part, _ in parts for i in part]
    return ids, [segment for part, segment in parts for _ in part]


def _strip(text, start, end):
    """Return the characters (start, end) without spaces at their ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def share_room(first, second, room):
    """Return how many tokens of two texts are kept.

    Of the longer one less, as long as it is longer.

    ```python
    from keras_attention.data.tokenizers.pretrained import share_room

    assert share_room(9, 3, 8) == (5, 3) and share_room(9, 9, 9) == (4, 5)
    ```
    """
    if room is None or first + second <= room:
        return first, second
    short, long = sorted((first, second))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (long, short) if first > second else (short, long)
