"""`PretrainedTokenizer`: a checkpoint's tokenizer, from strings to the inputs of its model."""

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

OWNER = "PretrainedTokenizer"
TEXT, PAIR = "text", "pair"  # placeholders in a template for the first and second text


@dataclasses.dataclass(frozen=True)
class StoredFile:
    """A file of a checkpoint's tokenizer in memory. `save` writes its bytes unchanged."""

    content: bytes

    def save(self, path):
        write_whole(path, self.content)


@dataclasses.dataclass(frozen=True, repr=False)
class PretrainedTokenizer:
    """The tokenizer of a Hugging Face checkpoint: converts strings to ids, and ids to strings.

    You rarely call the constructor: `ka.pretrained.tokenizer` returns the tokenizer of a
    checkpoint, and `from_vocabulary` makes one from a list of pieces. A `tokenizer.json` is read by
    the library `tokenizers`. For phones, `keras_attention.device` implements WordPiece and
    byte-level BPE in plain Python, and returns the same ids.

    Args:
        kind: the format of the files: `"tokenizer.json"`, or `"sentencepiece"`. `"t5"` and
            `"marian"` are SentencePiece files, too, with the ids that these models use.
        files: dict from file name to bytes, the checkpoint's files.
        single, pair: where special tokens are added to a single text, and to a pair of two strings:
            lists of (part, segment id). A part is `"text"`, `"pair"` (the second string), or the id
            of a special token. `pair` is None if the model does not read pairs.
        padding_id: int, the id that pads shorter rows, or None if every id is a token. Then all
            rows of a call must have the same length.
        has_segments: bool, whether the model also reads `"segment_ids"`.
        max_length: int, the maximum number of tokens in a row, including special tokens. Longer
            texts are cut. None for no limit.

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
    unit, vocabulary_size = "subwords", None  # a model may have more ids

    def __post_init__(self):
        for name in ("single", "pair"):
            if (template := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(tuple, template)))
        if self.max_length is not None:
            check_whole_number(OWNER, "max_length", self.max_length, most=MOST_TOKENS)
        object.__setattr__(self, "engine", engines.make_engine(self.kind, self.files))

    @classmethod
    def from_json(cls, content, **options):
        """Make a tokenizer from `content`, the bytes of a `tokenizer.json`.

        `options` are `padding_id`, `has_segments` and `max_length`. Raise a ValueError if the file
        is damaged or its template of special tokens is not supported.
        """
        single, pair = engines.LibraryEngine(content).read_templates()
        return cls("tokenizer.json", {"tokenizer.json": content}, single, pair, **options)

    @classmethod
    def from_vocabulary(cls, entries, *, lowercase, has_segments=True, **options):
        """Make BERT's WordPiece tokenizer from a list of pieces.

        `entries` are the pieces in the order of their ids, the lines of a `vocab.txt`. `lowercase`
        lower-cases strings and strips their accents. `has_segments` and `options` (`padding_id` and
        `max_length`) are as in the constructor.
        """
        content = json.dumps(engines.write_word_piece(entries, lowercase), ensure_ascii=False)
        return cls.from_json(content.encode(), has_segments=has_segments, **options)

    def __len__(self):
        return self.engine.size

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]` or `<mask>`, or None if the tokenizer has neither."""
        return self.engine.mask_id

    @property
    def mask_token(self):
        """str, `[MASK]` or `<mask>`, or None if the tokenizer has neither."""
        return None if self.mask_token_id is None else self.engine.name(self.mask_token_id)

    @property
    def special_ids(self):
        """frozenset of ints, the ids of special tokens and of padding."""
        padding = () if self.padding_id is None else (self.padding_id,)
        return frozenset({*self.engine.special_ids, *padding})

    @property
    def around(self):
        """two tuples of ints, the special tokens before and after a single text."""
        parts = [part for part, _ in self.single]
        index = parts.index(TEXT)
        return tuple(parts[:index]), tuple(parts[index + 1 :])

    def encode_plain(self, text):
        """Return the ids of `text`, a str of any length, without adding special tokens."""
        return self.engine.encode(text)

    def encode_sources(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, for an encoder.

        Special tokens are added.
        """
        return [np.array(row, "int32") for row in self.encode(texts)]

    def encode_targets(self, texts):
        """Return a list with the ids of each of `texts`, the strings that a decoder must generate.

        Only Marian splits such targets in another way than sources.
        """
        encode = getattr(self.engine, "encode_target", self.engine.encode)
        texts = check_texts(OWNER, texts)
        return [_place(self.single, {TEXT: encode(text)})[0] for text in texts]

    def encode(self, texts, pairs=None, *, max_length=None):
        """Return a list with the ids of each string, with special tokens. Long strings are cut.

        Args:
            texts: list of str.
            pairs: list of str, the second string for each of `texts`, or None.
            max_length: int, the maximum number of tokens in a row. None uses the tokenizer's limit.
        """
        return [ids for ids, _ in self._encode(texts, pairs, max_length)]

    def __call__(self, texts, pairs=None, *, max_length=None):
        """Convert strings to model inputs. The arguments are those of `encode`.

        The result is int32 ids (B, T), or a dict that also contains `"segment_ids"` (B, T). If the
        tokenizer has no padding, all rows must have the same length, or a ValueError is raised.
        """
        rows = self._encode(texts, pairs, max_length)
        ids = self.stack([ids for ids, _ in rows])
        if not self.has_segments:
            return ids
        return {"token_ids": ids, "segment_ids": pad_rows([row for _, row in rows])}

    def stack(self, rows, length=None):
        """Stack `rows`, lists of ids, into an int32 array (B, T), with padding at the end.

        `length` is T, or None for the length of the longest list. Raise a ValueError if rows differ
        in length and the model has no padding id.
        """
        lengths = {len(row) for row in rows} | ({length} if length else set())
        if self.padding_id is None and len(lengths) > 1:
            raise ValueError(
                "The strings differ in length, and this model has no id for padding: use encode()."
            )
        return pad_rows(rows, self.padding_id or 0, length)

    def encode_words(self, words, *, max_length=None):
        """Convert a list of W words to int32 ids (T,), and return (ids, positions).

        `positions`, ints (W,), are the indices of each word's first token. Special tokens are
        added. A word without pieces, such as control characters, becomes the unknown token. Raise a
        ValueError for more than `max_length` tokens. None uses the tokenizer's limit.
        """
        ids, positions = [], []
        for word in words:
            pieces = self.engine.encode(f" {word}" if self.engine.begins_words else word)
            positions.append(len(ids))
            ids += pieces or [self.engine.unknown_id or 0]
        before = len(self.around[0])
        ids, _ = _place(self.single, {TEXT: ids})
        limit = max_length or self.max_length
        if limit is not None and len(ids) > limit:
            raise ValueError(
                f"The sentence has {len(ids)} pieces of words, over this model's limit of {limit}: "
                f"{' '.join(words)[:40]!r}... Split it."
            )
        return ids, [before + position for position in positions]

    def encode_text(self, text, max_length=None):
        """Return the int32 ids (T,) of `text`, one str, with special tokens.

        The result is cut to `max_length` ids. None uses the limit of the tokenizer.
        """
        return np.array(self.encode([text], max_length=max_length)[0], "int32")

    def split(self, text, max_length=None):
        """Return the tokens of `text`, a list of str, for the same arguments as `encode_text`."""
        return self.pieces(self.encode_text(text, max_length))

    def count(self, text):
        """Return the number of tokens in `text`, a str, including special tokens."""
        return len(self.encode([text], max_length=MOST_TOKENS)[0])

    def name_words(self, words):
        """Return the tokens of `words`, a list of str, with special tokens."""
        return self.pieces(self.encode_words(words)[0])

    def encode_spans(self, text):
        """Return (ids, spans) of `text`, one str, without special tokens.

        The spans are int (n, 2), the start and end of each token in the string, without spaces.
        Raise a ValueError if this kind of tokenizer does not compute spans.
        """
        if not hasattr(self.engine, "encode_spans"):
            raise ValueError(f"A tokenizer of kind {self.kind} has no positions of its tokens.")
        ids, spans = self.engine.encode_spans(text)
        spans = [_strip(text, *span) for span in spans]
        return list(ids), np.array(spans, "int64").reshape(-1, 2)

    def decode(self, ids, *, special=False):
        """Convert ids, (B, T) or a list of lists, to a list of str.

        `special` is a bool, whether to keep special tokens in the strings.
        """
        rows = [[int(i) for i in row if i != self.padding_id] for row in ids]
        return [self.engine.decode(row, special) for row in rows]

    def token_texts(self):
        """Return two lists with the text of each id, after other ids and as the first id.

        A special id has None in place of a text.
        """
        special = self.special_ids
        return tuple(
            [None if i in special else text for i, text in enumerate(texts)]
            for texts in self.engine.token_texts()
        )

    def pieces(self, ids):
        """Return the tokens with the given `ids` (T,), a list of str."""
        return [self.engine.name(int(i)) for i in ids]

    name_tokens = pieces

    def _encode(self, texts, pairs, max_length):
        """Return a list of (ids, segments), one for each string or pair.

        `texts` and `pairs` are lists of str, and `pairs` may be None. `max_length` is the maximum
        number of ids, or None for the limit of the tokenizer.
        """
        texts, limit = check_texts(OWNER, texts), max_length or self.max_length
        if pairs is None:
            room = self._find_room(self.single, limit)
            return [_place(self.single, {TEXT: self.engine.encode(text)[:room]}) for text in texts]
        pairs = check_texts(OWNER, pairs)
        if len(pairs) != len(texts):
            raise ValueError(
                f"{len(texts)} strings and {len(pairs)} pairs: expected as many of each."
            )
        if self.pair is None:
            raise ValueError("This tokenizer's model does not read pairs: join the two strings.")
        room, rows = self._find_room(self.pair, limit), []
        for text, partner in zip(texts, pairs, strict=True):
            first, second = self.engine.encode(text), self.engine.encode(partner)
            a, b = share_room(len(first), len(second), room)
            rows.append(_place(self.pair, {TEXT: first[:a], PAIR: second[:b]}))
        return rows

    def _find_room(self, template, limit):
        """Return how many tokens of text fit into a row of `limit` tokens, or None for no limit.

        `template` is `single` or `pair`, a list of (part, segment id).
        """
        if limit is None:
            return None
        special = sum(part not in (TEXT, PAIR) for part, _ in template)
        if limit <= special:
            raise ValueError(
                f"max_length={limit} leaves no room for text: give at least {special + 1}."
            )
        return limit - special

    def config(self):
        """Return the entry of `manifest.json` from which an app can compute the same ids."""
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
        """Return a dict from the names of the tokenizer's files to objects with a method `save`."""
        return {name: StoredFile(content) for name, content in self.files.items()}

    @classmethod
    def load(cls, folder, fields):
        """Load a tokenizer from its files in `folder`.

        `fields` is the entry of `manifest.json` that `config` returned.
        """
        files, folder = {}, pathlib.Path(folder)
        for name in fields.texts("files"):
            files[name] = read_bytes(path_inside(folder, name, fields.locate("files")))
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
    """Read where special tokens are added, to a `"text"` or a `"pair"`, from `manifest.json`.

    Return a tuple of (part, segment id), as in `PretrainedTokenizer`.
    """
    parts = fields.values.get(name)
    names = [TEXT] if name == "text" else [TEXT, PAIR]
    try:
        template = tuple((part, segment) for part, segment in parts)
        is_valid = sorted(part for part, _ in template if isinstance(part, str)) == sorted(names)
        numbers = [x for pair in template for x in pair if not isinstance(x, str)]
        is_valid = is_valid and all(type(x) is int and 0 <= x <= MOST_ID for x in numbers)
    except (TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise fields.error(name, f"a list of [{' or '.join(names)} or an id, segment]")
    return template


def _place(template, texts):
    """Add special tokens around token ids, as `template` says. Return (ids, segment ids).

    `texts` is a dict from `TEXT` and `PAIR` to lists of ids.
    """
    parts = [(texts[w] if isinstance(w, str) else [w], segment) for w, segment in template]
    ids = [i for part, _ in parts for i in part]
    return ids, [segment for part, segment in parts for _ in part]


def _strip(text, start, end):
    """Shrink a span of characters (start, end) so that it excludes spaces at both ends."""
    part = text[start:end]
    start = end - len(part.lstrip())
    return start, max(start, end - len(part) + len(part.rstrip()))


def share_room(first, second, room):
    """Decide how to cut a pair of strings with `first` and `second` tokens to `room` tokens.

    Return how many tokens of each to keep. The longer string is cut first. If `room` is None, all
    tokens are kept.
    """
    if room is None or first + second <= room:
        return first, second
    short, long = sorted((first, second))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (long, short) if first > second else (short, long)
