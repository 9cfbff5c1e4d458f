"""`WordPiece`: BERT's subwords in plain Python, from a checkpoint's `tokenizer.json`.

The library `tokenizers` returns the same ids faster. This module uses only the standard library, so
it also runs on devices. Use it as a reference to write a tokenizer for an app in another language.
"""

import functools
import re
import unicodedata

MOST_CHARACTERS = 1 << 20  # upper limit of `longest_word` when read from a file
_SPACES = "\t\n\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # White_Space
_CHINESE = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_CHINESE_CHARACTER = re.compile(f"([{_CHINESE}])")
_SPACE_RUN = re.compile(f"[{_SPACES}]+")
_CLEANUP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
    *((" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


class WordPiece:
    """Splits words into the longest pieces in a vocabulary (Devlin et al., 2019; Wu et al., 2016).

    Args:
        entries: dict {piece: id}. Pieces that continue a word begin with `prefix`.
        unknown: str, the piece for words that cannot be split. It must be in `entries`.
        prefix: str, marks pieces that continue a word.
        lowercase: bool, whether to lowercase text.
        strip_accents: bool, whether to remove accents. None does the same as `lowercase`.
        chinese: bool, whether each Chinese character is a word.
        clean: bool, whether to remove control characters and replace any whitespace by a space.
        longest_word: int, the maximum number of characters. Longer words become `unknown`.
        cleanup: bool, whether decoding removes spaces before punctuation and contractions.

    ```python
    from keras_attention.device.word_piece import WordPiece

    entries = {"[UNK]": 0, "the": 1, "cat": 2, "##s": 3}
    pieces = WordPiece(entries, unknown="[UNK]", lowercase=True)
    assert pieces.encode("The cats!") == [1, 2, 3, 0]
    assert pieces.decode([1, 2, 3]) == "the cats"
    ```
    """

    begins_words = False  # whether a single word must be encoded with a space before it

    def __init__(
        self,
        entries,
        *,
        unknown="[UNK]",
        prefix="##",
        lowercase=False,
        strip_accents=None,
        chinese=True,
        clean=True,
        longest_word=100,
        cleanup=True,
    ):
        self.entries, self.prefix, self.longest_word = dict(entries), prefix, longest_word
        self.unknown_id = self.entries[unknown]
        self.lowercase, self.chinese, self.clean = lowercase, chinese, clean
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.cleanup = cleanup
        self.names = {i: piece for piece, i in self.entries.items()}
        self._split = functools.lru_cache(1 << 16)(self._split_word)
        self.longest_piece = max(map(len, self.entries), default=0)

    @classmethod
    def from_json(cls, rules):
        """Make a `WordPiece` from `rules`, the parsed `tokenizer.json`, a dict, or return None.

        None means that the file uses a feature that this class does not support.
        """
        model, normalizer = rules["model"], rules["normalizer"]
        kinds = [part and part["type"] for part in (model, normalizer, rules["pre_tokenizer"])]
        if kinds != ["WordPiece", "BertNormalizer", "BertPreTokenizer"]:
            return None
        decoder = rules.get("decoder") or {}
        return cls(
            model["vocab"],
            unknown=model["unk_token"],
            prefix=model["continuing_subword_prefix"],
            longest_word=min(model["max_input_chars_per_word"], MOST_CHARACTERS),
            lowercase=normalizer["lowercase"],
            strip_accents=normalizer["strip_accents"],
            chinese=normalizer["handle_chinese_chars"],
            clean=normalizer["clean_text"],
            cleanup=decoder.get("cleanup", True),
        )

    def encode(self, text):
        """Return the ids of the string `text`, a list of ints."""
        return [i for word in self.words(text) for i in self._split(word)]

    def words(self, text):
        """Return the normalized words and punctuation marks of the string `text`, a list."""
        text = self._normalize(text)
        return [word for run in _SPACE_RUN.split(text) if run for word in _split_punctuation(run)]

    def encode_spans(self, text):
        """Return the ids of the string `text`, and for each id its span in `text`.

        A span is (start, end) in characters, without the end.
        """
        letters, origins = self._trace(text)
        ids, spans, start = [], [], 0
        while start < len(letters):
            end = start + 1
            if _SPACE_RUN.match(letters[start]):
                start = end
                continue
            if not _is_punctuation(letters[start]):
                while end < len(letters) and not (
                    _SPACE_RUN.match(letters[end]) or _is_punctuation(letters[end])
                ):
                    end += 1
            for i, (first, last) in self._place_pieces(letters[start:end]):
                ids.append(i)
                spans.append((origins[start + first], origins[start + last - 1] + 1))
            start = end
        return ids, spans

    def _trace(self, text):
        """Return the normalized text, and for each of its characters the index in `text`."""
        letters, origins = [], []
        for index, character in enumerate(text):
            new = self._normalize(character)
            letters.append(new)
            origins += [index] * len(new)
        letters, whole = "".join(letters), self._normalize(text)
        # Normalizing the whole text may reorder the combining marks of a letter.
        return (whole if len(whole) == len(letters) else letters), origins

    def _place_pieces(self, word):
        """Return (id, (start, end)) for each piece of a normalized word, the span in the word."""
        ids, end = self._split(word), 0
        if ids == (self.unknown_id,):
            return [(self.unknown_id, (0, len(word)))]
        pieces = []
        for i in ids:
            begin = end
            end = begin + len(self.names[i]) - (len(self.prefix) if begin else 0)
            pieces.append((i, (begin, end)))
        return pieces

    def _normalize(self, text):
        if self.clean:
            text = "".join(_clean(c) for c in text)
        if self.chinese:
            text = _CHINESE_CHARACTER.sub(r" \1 ", text)
        if self.strip_accents:
            decomposed = unicodedata.normalize("NFD", text)
            text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        # Character by character, because Python lowercases a sigma depending on its neighbors.
        return "".join(c.lower() for c in text) if self.lowercase else text

    def _split_word(self, word):
        """Return a tuple of ids: the longest matching pieces from the left, or the unknown id."""
        if len(word) > self.longest_word:
            return (self.unknown_id,)
        ids, start = [], 0
        while start < len(word):
            prefix = self.prefix if start else ""
            last = min(len(word), start + self.longest_piece)
            for end in range(last, start, -1):
                if (i := self.entries.get(prefix + word[start:end])) is not None:
                    ids.append(i)
                    start = end
                    break
            else:
                return (self.unknown_id,)
        return tuple(ids)

    def decode(self, ids):
        """Return the text of a list of ids, with the pieces of each word joined."""
        text = ""
        for index, i in enumerate(ids):
            piece = self.names[i]
            if piece.startswith(self.prefix) and index:
                piece = piece[len(self.prefix) :]
            elif index:
                piece = f" {piece}"
            if self.cleanup:
                for old, new in _CLEANUP:
                    piece = piece.replace(old, new)
            text += piece
        return text


@functools.cache
def _clean(character):
    """Return "" for a control character, " " for whitespace, else the character itself."""
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return " " if _SPACE_RUN.match(character) else character


@functools.cache
def _is_punctuation(character):
    ascii_one = 33 <= ord(character) < 127 and not character.isalnum()
    return ascii_one or unicodedata.category(character).startswith("P")


def _split_punctuation(run):
    """Split a string without spaces into a list of words and punctuation marks."""
    words, begun = [], ""
    for character in run:
        if _is_punctuation(character):
            words += [begun, character] if begun else [character]
            begun = ""
        else:
            begun += character
    return [*words, begun] if begun else words
