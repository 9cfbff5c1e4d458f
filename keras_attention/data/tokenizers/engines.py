"""Engines of a `PretrainedTokenizer`: the library `tokenizers`, or SentencePiece.

SentencePiece files are read by `sentencepiece`. The function `from_spm` of `tokenizers` reads only
unigram models, and returns different ids for strings that end with spaces or contain a special
token.
"""

import itertools
import json
import re
import string

from keras_attention.data.tokenizers.subwords import read_piece_texts
from keras_attention.files.extras import import_sentencepiece, import_tokenizers
from keras_attention.files.io import parse_json

MASKS = ("[MASK]", "<mask>")
MARIAN_SPECIAL = ("</s>", "<pad>", "<unk>")
SENTINELS = 100  # T5's tokens `<extra_id_0>` to `<extra_id_99>`: its last ids, in reverse order


def make_engine(kind, files):
    """Return an object that tokenizes with a checkpoint's files, such as a `MarianEngine`.

    `kind` is the format of the files, a key of `KINDS`. `files` is a dict from name to bytes.
    """
    return KINDS[kind](*files.values())


def parse_rules(content):
    """Parse `content`, the bytes of a `tokenizer.json`, into a dict.

    Raise a ValueError if the content is damaged. A missing normalizer, pre-tokenizer or
    post-processor becomes None.
    """
    try:
        rules = parse_json(content.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"tokenizer.json is damaged: {str(error)[:80]}") from error
    if not isinstance(rules, dict) or not isinstance(rules.get("model"), dict):
        raise ValueError("tokenizer.json is damaged: it has no model.")
    return {"normalizer": None, "pre_tokenizer": None, "post_processor": None} | rules


class LibraryEngine:
    """Tokenizes with the library `tokenizers`. `content` are the bytes of a `tokenizer.json`."""

    def __init__(self, content):
        tokenizers = import_tokenizers("PretrainedTokenizer")
        rules = parse_rules(content)
        try:
            self.rules = tokenizers.Tokenizer.from_str(content.decode("utf-8"))
        except Exception as error:  # the library raises a plain Exception
            raise ValueError(f"tokenizer.json is damaged: {str(error)[:200]}") from error
        self.rules.no_padding()
        self.rules.no_truncation()
        self.size = self.rules.get_vocab_size()
        self.mask_id = next(filter(None, map(self.rules.token_to_id, MASKS)), None)
        unknown = rules["model"].get("unk_token")
        self.unknown_id = self.rules.token_to_id(unknown) if unknown else None
        added = rules.get("added_tokens") or []
        self.special_ids = {token["id"] for token in added if token["special"]}
        self.begins_words = "ByteLevel" in json.dumps(rules["pre_tokenizer"])
        self.decoder = json.dumps(rules.get("decoder"))

    def encode(self, text):
        return self.rules.encode(text, add_special_tokens=False).ids

    def encode_spans(self, text):
        encoding = self.rules.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def read_templates(self):
        """Return where special tokens are added: the templates of a single text and of a pair.

        A template is a list of (part, segment id). A part is `"text"`, `"pair"` (the second text),
        or the id of a special token.
        """
        text = next(filter(self.encode, string.printable), "")
        return self._frame(text), self._frame(text, text)

    def _frame(self, *texts):
        encoding, template = self.rules.encode(*texts), []
        for i, segment, sequence in zip(
            encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True
        ):
            part = i if sequence is None else ("text", "pair")[sequence]
            if sequence is None or part not in [name for name, _ in template]:
                template.append((part, segment))
        if sum(isinstance(part, str) for part, _ in template) < len(texts):
            raise ValueError("tokenizer.json lacks tokens of printable characters.")
        return template

    def decode(self, ids, special):
        return self.rules.decode(ids, skip_special_tokens=not special)

    def token_texts(self):
        names = [self.name(i) for i in range(self.size)]
        if '"ByteLevel"' in self.decoder:
            texts = [name and _read_byte_level(name) for name in names]
            return texts, texts
        first = self.rules.decode_batch([[i] for i in range(self.size)])
        before = next(i for i, text in enumerate(first) if text.isalpha())
        pairs = self.rules.decode_batch([[before, i] for i in range(self.size)])
        rest = [pair[len(first[before]) :] for pair in pairs]
        for i, name in enumerate(names):
            if name and '"ByteFallback"' in self.decoder and re.fullmatch("<0x[0-9A-F]{2}>", name):
                first[i] = rest[i] = bytes([int(name[3:5], 16)])
        return rest, [text or None for text in first]

    def name(self, i):
        return self.rules.id_to_token(i)


class SentencePieceEngine:
    """Tokenizes with a SentencePiece model, for a checkpoint that uses the ids of this model.

    Args:
        content: bytes of the model.
        sentinels: int, the number of T5's tokens `<extra_id_0>`, ... after the ids of the model.
    """

    begins_words, mask_id = False, None

    def __init__(self, content, sentinels=0):
        self.processor = _load_sentence_piece(content)
        self.model_size = self.processor.vocab_size()
        self.size = self.model_size + sentinels
        self.unknown_id = self.processor.unk_id()
        self.special_ids = {i for i in range(self.size) if self._is_special(i)}
        self.sentinels = {f"<extra_id_{k}>": self.size - 1 - k for k in range(sentinels)}
        self.names = {i: name for name, i in self.sentinels.items()}
        candidates = range(self.model_size if sentinels else 0)
        special = [i for i in candidates if self._is_special(i) or i == self.unknown_id]
        self.special = self.sentinels | {self.name(i): i for i in special}

    def encode(self, text):
        ids = []
        for part in _split_at(self.special, text):
            i = self.special.get(part)
            ids += [i] if i is not None else self.processor.encode(part)
        return ids

    def decode(self, ids, special):
        ids, texts = [i for i in ids if special or not self._is_special(i)], []
        for is_sentinel, run in itertools.groupby(ids, lambda i: i >= self.model_size):
            run = list(run)
            texts += [self.names[i] for i in run] if is_sentinel else [self.processor.decode(run)]
        return " ".join(filter(None, texts))

    def token_texts(self):
        pieces = [None if self._is_special(i) else self.name(i) for i in range(self.size)]
        return read_piece_texts(self.processor, pieces)

    def _is_special(self, i):
        return i >= self.model_size or self.processor.is_control(i)

    def name(self, i):
        return self.names[i] if i >= self.model_size else self.processor.id_to_piece(i)


class MarianEngine:
    """Tokenizes with two SentencePiece models, for source and target, that share one table of ids.

    Args:
        table: bytes of `vocab.json`, which maps pieces to ids.
        source, target: bytes of the two models. A language code at the start of a source, such as
            `>>fra<<`, is one token.
    """

    begins_words, mask_id = False, None

    def __init__(self, table, source, target):
        self.ids = parse_json(table.decode("utf-8"))
        if not isinstance(self.ids, dict) or "<unk>" not in self.ids or "</s>" not in self.ids:
            raise ValueError("vocab.json is damaged: expected an object with <unk> and </s>.")
        self.names, self.size = {i: name for name, i in self.ids.items()}, len(self.ids)
        self.source, self.target = _load_sentence_piece(source), _load_sentence_piece(target)
        self.unknown_id = self.ids["<unk>"]
        self.special_ids = {self.ids[name] for name in MARIAN_SPECIAL if name in self.ids}

    def encode(self, text):
        return self._encode(self.source, text)

    def encode_target(self, text):
        """Return the ids of `text`, a str in the target language."""
        return self._encode(self.target, text)

    def _encode(self, processor, text):
        pieces = []
        for part in _split_at(MARIAN_SPECIAL, text):
            if part in MARIAN_SPECIAL:
                pieces.append(part)
                continue
            code = re.match("(?s)>>.*?<<", part)
            pieces += [code[0]] if code else []
            pieces += processor.encode(part[code.end() if code else 0 :], out_type=str)
        return [self.ids.get(piece, self.unknown_id) for piece in pieces]

    def decode(self, ids, special):
        pieces = [self.names[i] for i in ids]
        if not special:
            pieces = [p for p in pieces if p not in MARIAN_SPECIAL]
        return self.target.decode(pieces)

    def token_texts(self):
        return read_piece_texts(self.target, [self.names.get(i) for i in range(self.size)])

    def name(self, i):
        return self.names[i]


def _read_byte_level(name):
    """Return the bytes that a token of byte-level BPE writes. `name` has a character for each."""
    return bytes(map(_BYTES.get, name)) if _BYTES.keys() >= set(name) else name.encode()


_PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]  # these bytes stand for themselves
_BYTES = {chr(byte): byte for byte in _PRINTED} | {
    chr(256 + k): byte for k, byte in enumerate(b for b in range(256) if b not in _PRINTED)
}


def _split_at(names, text):
    """Split a string at the special tokens `names`. The tokens are parts of the result, too."""
    if not names:
        return [text]
    longest_first = sorted(names, key=len, reverse=True)
    return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)


def _load_sentence_piece(content):
    sentencepiece = import_sentencepiece("PretrainedTokenizer")
    try:
        if not content:
            raise TypeError("no bytes")
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"The SentencePiece model is damaged ({len(content)} bytes).") from error


KINDS = {
    "tokenizer.json": LibraryEngine,
    "sentencepiece": SentencePieceEngine,
    "t5": lambda content: SentencePieceEngine(content, SENTINELS),
    "marian": MarianEngine,
}


def write_word_piece(entries, lowercase):
    """Convert BERT's `vocab.txt` to the content of a `tokenizer.json`, a dict.

    `entries` are the pieces in the order of their ids, including the usual special tokens.
    `lowercase` is a bool, whether the tokenizer lower-cases strings.
    """
    ids = {piece: i for i, piece in enumerate(entries)}
    names = [name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in ids]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    if missing := {"[UNK]", "[CLS]", "[SEP]"} - set(names):
        raise ValueError(f"vocab.txt lacks the piece {sorted(missing)[0]}: expected BERT's pieces.")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": ids[name], "content": name, "special": True, **flags} for name in names
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": ["[SEP]", ids["[SEP]"]],
            "cls": ["[CLS]", ids["[CLS]"]],
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
