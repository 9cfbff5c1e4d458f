"""`ByteBPE`: GPT-2's byte-level subwords in plain Python, from a checkpoint's `tokenizer.json`.

The library `tokenizers` returns the same ids faster. This module uses only the standard library, so
it also runs on devices. Use it as a reference to write a tokenizer for an app in another language.
"""

import functools
import itertools
import re
import sys
import unicodedata

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # White_Space
_CLASS = re.compile(r"\\p\{(\w+)\}|\\([sS])|(\\.)|(\[\^?)|(\])")


class ByteBPE:
    """Splits text into subwords, with byte-pair encoding (Radford et al., 2019, section 2.2).

    Args:
        entries: dict {piece: id}. Each character of a piece stands for one byte.
        merges: list of (piece, piece), the pairs of pieces to join, highest priority first.
        pattern: str, a regular expression in the syntax of `tokenizers` that splits text into
            parts. Pieces are joined only within a part.
        prefix_space: bool, whether to put a space before text that does not start with a space.
        whole_words: bool, whether a part that is in `entries` becomes one piece without merging.
        form: `"NFC"`, `"NFD"`, `"NFKC"` or `"NFKD"`, the Unicode normalization of the text. None
            leaves the text unchanged.

    ```python
    from keras_attention.device.byte_bpe import ByteBPE

    entries = {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4}
    pieces = ByteBPE(entries, [("a", "b"), ("Ġ", "ab")])
    assert pieces.encode("ab abb") == [3, 4, 1]
    assert pieces.decode([3, 4, 1]) == "ab abb"
    ```
    """

    begins_words = True  # whether a single word must be encoded with a space before it
    unknown_id = None

    def __init__(
        self, entries, merges, *, pattern=GPT2, prefix_space=False, whole_words=False, form=None
    ):
        self.entries, self.form = dict(entries), form
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.pattern, self.prefix_space = compile_pattern(pattern), prefix_space
        self.whole_words = whole_words
        self.names = {i: piece for piece, i in self.entries.items()}
        self._split = functools.lru_cache(1 << 16)(self._split_part)

    @classmethod
    def from_json(cls, rules):
        """Make a `ByteBPE` from `rules`, the parsed `tokenizer.json`, a dict, or return None.

        None means that the file uses a feature that this class does not support.
        """
        model, normalizer = rules["model"], rules["normalizer"] or {"type": None}
        refused = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
        if model["type"] != "BPE" or any(model.get(name) for name in refused):
            return None
        splitting = _read_splitting(rules["pre_tokenizer"])
        forms = (None, "NFC", "NFD", "NFKC", "NFKD")
        if splitting is None or model.get("byte_fallback") or normalizer["type"] not in forms:
            return None
        merges = [tuple(m.split(" ", 1)) if isinstance(m, str) else tuple(m)
                  for m in model["merges"]]  # fmt: skip
        whole_words = bool(model.get("ignore_merges"))
        return cls(
            model["vocab"], merges, whole_words=whole_words, form=normalizer["type"], **splitting
        )

    def encode(self, text):
        """Return the ids of the string `text`, a list of ints."""
        if self.form:
            text = unicodedata.normalize(self.form, text)
        if self.prefix_space and text and not text.startswith(" "):
            text = f" {text}"
        return [i for part in self._parts(text) for i in self._split(part)]

    def encode_spans(self, text):
        """Return the ids of the string `text`, and for each id its span in `text`.

        A span is (start, end) in characters, without the end.
        """
        letters, origins = self._trace(text)
        ids, spans, done = [], [], 0
        for part in self._parts(letters):
            sizes = [len(c.encode("utf-8", "surrogatepass")) for c in part]
            owners = [done + k for k, size in enumerate(sizes) for _ in range(size)]
            named = [_LETTERS[byte] for byte in part.encode("utf-8", "surrogatepass")]
            begin = 0
            for i in self._split(part):
                while named[begin] != self.names[i][0]:  # a byte that the vocabulary lacks
                    begin += 1
                end = begin + len(self.names[i])
                ids.append(i)
                spans.append((origins[owners[begin]], origins[owners[end - 1]] + 1))
                begin = end
            done += len(part)
        return ids, spans

    def _trace(self, text):
        """Return the normalized text, and for each of its characters the index in `text`."""
        letters, origins = text, list(range(len(text)))
        if self.form and unicodedata.normalize(self.form, text) != text:
            # Normalizing a letter with its combining marks may change the number of characters. All
            # new characters then get the index of the letter.
            starts = [k for k, c in enumerate(text) if not k or not unicodedata.combining(c)]
            clusters = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
            new = [unicodedata.normalize(self.form, cluster) for cluster in clusters]
            letters, origins = "".join(new), []
            for start, old, x in zip(starts, clusters, new, strict=True):
                origins += range(start, start + len(x)) if old == x else [start] * len(x)
        if self.prefix_space and letters and not letters.startswith(" "):
            letters, origins = f" {letters}", [0, *origins]
        return letters, origins

    def _parts(self, text):
        """Yield the matches of the pattern and the text between them, in order."""
        end = 0
        for match in self.pattern.finditer(text):
            if match.start() > end:
                yield text[end : match.start()]
            if match.group():
                yield match.group()
            end = match.end()
        if end < len(text):
            yield text[end:]

    def _split_part(self, part):
        pieces = [_LETTERS[byte] for byte in part.encode("utf-8", "surrogatepass")]
        if self.whole_words and (i := self.entries.get("".join(pieces))) is not None:
            return (i,)
        while len(pieces) > 1:
            pairs = list(itertools.pairwise(pieces))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, sys.maxsize))
            if best not in self.ranks:
                break
            pieces = _join(pieces, best)
        # Pieces that are not in the vocabulary are left out, as in `tokenizers`.
        return tuple(self.entries[piece] for piece in pieces if piece in self.entries)

    def decode(self, ids):
        """Return the text of a list of ids. Invalid UTF-8 becomes U+FFFD."""
        letters = "".join(self.names[i] for i in ids)
        if all(letter in _BYTES for letter in letters):
            return bytes(_BYTES[letter] for letter in letters).decode("utf-8", "replace")
        return letters


def _join(pieces, pair):
    """Return `pieces` with every occurrence of `pair` joined to one piece."""
    joined, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            joined.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def _read_splitting(rules):
    """Return the arguments `pattern` and `prefix_space` from the pre-tokenizer, or None.

    `rules` is the entry `"pre_tokenizer"` of a `tokenizer.json`. None means not supported.
    """
    parts = rules["pretokenizers"] if rules and rules["type"] == "Sequence" else [rules]
    if not parts or not parts[-1] or parts[-1]["type"] != "ByteLevel":
        return None
    pattern = GPT2 if parts[-1].get("use_regex", True) else ".+"
    if len(parts) == 2:
        split, before = parts[0], pattern
        if split["type"] != "Split" or split["behavior"] != "Isolated" or before != ".+":
            return None
        pattern = split["pattern"].get("Regex")
    if len(parts) > 2 or pattern is None or is_unsupported(pattern):
        return None
    return {"pattern": pattern, "prefix_space": parts[-1]["add_prefix_space"]}


def is_unsupported(pattern):
    """Return whether `compile_pattern` cannot translate `pattern`, a regular expression."""
    try:
        compile_pattern(pattern)
    except (KeyError, re.error):
        return True
    return False


@functools.cache
def compile_pattern(pattern):
    r"""Translate a regular expression of Rust, and return the compiled pattern of Python.

    Replaces `\p{...}`, which Python lacks, and `\s` and `\S`, which differ for Unicode spaces.
    """
    inside = False

    def replace(match):
        nonlocal inside
        category, space, escaped, opens, closes = match.groups()
        if escaped:
            return escaped
        if opens or closes:
            inside = bool(opens)
            return match.group()
        if category:
            ranges = _find_ranges(category)
            return ranges if inside else f"[{ranges}]"
        if space == "S":
            if inside:
                raise KeyError("\\S in a class")
            return f"[^{_SPACES}]"
        return _SPACES if inside else f"[{_SPACES}]"

    return re.compile(_CLASS.sub(replace, pattern), re.DOTALL)


@functools.cache
def _find_ranges(category):
    r"""Return the characters of a Unicode category as ranges for a regular expression.

    `category` is one letter for a group of categories, such as `"L"`, or two, such as `"Nd"`. The
    result can stand inside `[...]`, such as `\U00000030-\U00000039\U00000660-...` for `"Nd"`.
    """
    if len(category) > 2 or category[0] not in "LNPSMZC":
        raise KeyError(category)
    codes = [c for c in range(0x110000) if unicodedata.category(chr(c)).startswith(category)]
    groups = itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0])
    ranges = [[code for _, code in group] for _, group in groups]
    return "".join(f"\\U{r[0]:08x}-\\U{r[-1]:08x}" for r in ranges)


def _name_bytes():
    """Return a dict {byte: character}, GPT-2's printable characters for bytes.

    A printable byte is its own character. Other bytes get the characters from U+0100.
    """
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printing}
    return letters | {
        byte: chr(256 + n) for n, byte in enumerate(sorted(set(range(256)) - set(printing)))
    }


_LETTERS = _name_bytes()
_BYTES = {letter: byte for byte, letter in _LETTERS.items()}
