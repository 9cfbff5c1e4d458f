"""Tokenizers of checkpoints, and those in plain Python for apps, which give the same ids."""

import gzip
import io
import itertools
import json
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data.tokenizers import engines
from keras_attention.data.tokenizers.pretrained import share_room
from keras_attention.device.byte_bpe import ByteBPE, compile_pattern
from keras_attention.device.word_piece import WordPiece
from keras_attention.files.fields import Fields

tokenizers = pytest.importorskip("tokenizers")

LINES = [
    "The cats sat on the mat.",
    "Ça va? Na\u00efve caf\u00e9s, r\u00e9sum\u00e9s \u2014 \u201cquoted\u201d \u2026",
    "\u0130stanbul \u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 stra\u00dfe \ufb01ne",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002 \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8",
    "tabs\tand\nnew lines\r\n  and   many    spaces  ",
    "\u200bzero\u200dwidth\x00 control\x07 \ufffd \xa0nbsp\u3000wide",
    "e-mail@example.com costs $3.50, isn't it? I'll we've they're DON'T",
    "\U0001f600 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0301combining a\u0301",
    "x" * 150 + " long 12345678901 \u00b2\u2167 \u0661\u0662",
    "",
    " ",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8",
    "[MASK] of [SEP] it <mask> here",
]
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_word_piece(lowercase):
    rules = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    rules.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    rules.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    rules.decoder = tokenizers.decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=special, show_progress=False
    )
    rules.train_from_iterator(LINES * 3, trainer)
    rules.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return rules.to_str().encode()


def train_bytes(pattern=None, prefix_space=False, normalizer=None, whole=False):
    rules = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=whole))
    kinds = tokenizers.pre_tokenizers
    rules.pre_tokenizer = kinds.ByteLevel(add_prefix_space=prefix_space)
    if pattern:
        split = kinds.Split(tokenizers.Regex(pattern), "isolated")
        level = kinds.ByteLevel(add_prefix_space=False, use_regex=False)
        rules.pre_tokenizer = kinds.Sequence([split, level])
    if normalizer:
        rules.normalizer = normalizer
    rules.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=kinds.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>"],
        show_progress=False,
    )
    rules.train_from_iterator(LINES * 3, trainer)
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
    rules.add_special_tokens([mask])
    rules.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return rules.to_str().encode()


RULES = {
    "BERT, small letters": lambda: train_word_piece(True),
    "BERT, capitals": lambda: train_word_piece(False),
    "GPT-2": train_bytes,
    "RoBERTa of words": lambda: train_bytes(prefix_space=True),
    "Llama 3": lambda: train_bytes(LLAMA_3, whole=True),
    "Qwen": lambda: train_bytes(LLAMA_3, normalizer=tokenizers.normalizers.NFC()),
}


PLAIN = [line for line in LINES if "[MASK]" not in line]  # without tokens of their own


def make_plain(content):
    """Return the tokenizer for apps from a `tokenizer.json`."""
    rules = engines.parse_rules(content)
    return WordPiece.from_json(rules) or ByteBPE.from_json(rules)


@pytest.mark.parametrize("name", RULES)
def test_plain_python_gives_the_ids_and_texts_of_the_library(name):
    content = RULES[name]()
    library, plain = engines.LibraryEngine(content), make_plain(content)
    for line in PLAIN:
        ids = library.encode(line)
        assert plain.encode(line) == ids, line
        ordinary = [i for i in ids if i not in library.special_ids]
        assert plain.decode(ordinary) == library.decode(ids, special=False), line
    assert library.mask_id is not None and plain.unknown_id == library.unknown_id
    assert plain.begins_words == library.begins_words


@pytest.mark.parametrize("name", ["BERT, small letters", "GPT-2"])
def test_texts_and_pairs_are_cut_and_framed_as_the_library_does(name):
    content = RULES[name]()
    ours = ka.data.PretrainedTokenizer.from_json(content, has_segments=True)
    theirs = tokenizers.Tokenizer.from_str(content.decode())
    draw = np.random.default_rng(0)
    for _ in range(200):
        first, second = (LINES[i] for i in draw.integers(len(LINES), size=2))
        length = int(draw.integers(5, 60))
        theirs.enable_truncation(length)
        expected = theirs.encode(first, second)
        actual = ours([first], [second], max_length=length)
        assert actual["token_ids"][0].tolist() == expected.ids
        if name.startswith("BERT"):
            assert actual["segment_ids"][0].tolist() == expected.type_ids
        assert ours.encode([first], max_length=length) == [theirs.encode(first).ids]


@pytest.mark.parametrize("name", ["BERT, small letters", "RoBERTa of words"])
def test_words_have_the_positions_of_their_first_pieces(name):
    content = RULES[name]()
    ours = ka.data.PretrainedTokenizer.from_json(content)
    theirs = tokenizers.Tokenizer.from_str(content.decode())
    for line in LINES[:8]:
        words = [w for w in line.split() if ours.engine.encode(w)]
        expected = theirs.encode(words, is_pretokenized=True)
        ids, positions = ours.encode_words(words)
        assert ids == expected.ids
        assert positions == [expected.word_ids.index(k) for k in range(len(words))]


@pytest.mark.parametrize("name", RULES)
def test_plain_python_classifies_characters_as_the_library(name):
    content = RULES[name]()
    library, plain = ka.data.PretrainedTokenizer.from_json(content), make_plain(content)
    for line in PLAIN:
        ids, spans = library.encode_spans(line)
        plain_ids, plain_spans = plain.encode_spans(line)
        assert plain_ids == ids == library.engine.encode(line), line
        for (start, end), span in zip(plain_spans, spans.tolist(), strict=True):
            begin = start + len(line[start:end]) - len(line[start:end].lstrip())
            assert line[start:end].strip() == line[slice(*span)], line
            assert not line[start:end].strip() or begin == span[0], line


def test_a_word_without_a_piece_is_unknown():
    tokenizer = ka.data.PretrainedTokenizer.from_json(train_word_piece(True))
    ids, positions = tokenizer.encode_words(["cats", "\u200b", "sat"])
    assert ids[positions[1]] == tokenizer.engine.unknown_id == 1 and len(positions) == 3


def test_too_long_sentence_is_an_error():
    tokenizer = ka.data.PretrainedTokenizer.from_json(train_word_piece(True), max_length=6)
    with pytest.raises(ValueError, match="pieces of words, over this model's limit of 6: 'the"):
        tokenizer.encode_words(["the", "mat"] * 4)


def test_room_is_shared_as_the_library_does():
    for first in range(7):
        for second in range(7):
            for room in range(1, 12):
                a, b = share_room(first, second, room)
                assert 0 <= a <= first and 0 <= b <= second
                assert a + b == min(room, first + second)
    assert share_room(3, 9, 8) == (3, 5) and share_room(4, 4, None) == (4, 4)


def test_without_the_library_an_error_says_what_to_install(monkeypatch):
    content = train_word_piece(True)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"needs tokenizers .*\[pretrained\]"):
        ka.data.PretrainedTokenizer.from_json(content)


def test_saved_tokenizer_loads_with_the_same_encoding(tmp_path):
    tokenizer = ka.data.PretrainedTokenizer.from_json(
        train_bytes(), padding_id=1, max_length=20, has_segments=True
    )
    for name, part in tokenizer.parts().items():
        part.save(tmp_path / name)
    fields = Fields(tmp_path / "manifest.json", json.loads(json.dumps(tokenizer.config())))
    again = ka.data.PretrainedTokenizer.load(tmp_path, fields)
    assert again == tokenizer and again.encode(LINES) == tokenizer.encode(LINES)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"files": ["../tokenizer.json"]}, "files"),
        ({"kind": "pickle"}, "kind is 'pickle': expected one of tokenizer.json"),
        ({"text": [["text", 0], ["text", 0]]}, "text is .*: expected a list of"),
        ({"text": [[-1, 0], ["text", 0]]}, "text is .*: expected a list of"),
        ({"text": 3}, "text is 3: expected a list of"),
        ({"padding_id": "0"}, "padding_id is '0'"),
        ({"max_length": 10**12}, "max_length is 1000000000000"),
    ],
)
def test_damaged_entries_are_refused(change, message, tmp_path):
    tokenizer = ka.data.PretrainedTokenizer.from_json(train_bytes())
    for name, part in tokenizer.parts().items():
        part.save(tmp_path / name)
    fields = Fields(tmp_path / "manifest.json", tokenizer.config() | change)
    with pytest.raises(ValueError, match=message):
        ka.data.PretrainedTokenizer.load(tmp_path, fields)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\xff", "tokenizer.json is damaged"),
        (b"[1]", "tokenizer.json is damaged"),
        (b'{"model": {"type": "WordPiece"}}', "tokenizer.json is damaged"),
    ],
)
def test_damaged_files_are_refused(content, message):
    with pytest.raises(ValueError, match=message):
        engines.LibraryEngine(content)


TEMPLATES = {
    "BERT, small letters": (
        [(2, 0), ("text", 0), (3, 0)],
        [(2, 0), ("text", 0), (3, 0), ("pair", 1), (3, 1)],
    ),
    "GPT-2": (
        [(0, 0), ("text", 0), (1, 0)],
        [(0, 0), ("text", 0), (1, 0), (1, 0), ("pair", 0), (1, 0)],
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_special_tokens_around_texts_are_those_of_the_library(name):
    assert engines.LibraryEngine(RULES[name]()).read_templates() == TEMPLATES[name]


def test_without_special_tokens_a_text_stays_as_it_is():
    rules = json.loads(train_bytes())
    rules["post_processor"] = None
    content = json.dumps(rules).encode()
    expected = [("text", 0)], [("text", 0), ("pair", 1)]
    assert engines.LibraryEngine(content).read_templates() == expected


def test_unsupported_special_tokens_are_refused():
    rules = json.loads(train_bytes())
    rules["post_processor"] = {"type": "Poetry"}
    with pytest.raises(ValueError, match="tokenizer.json is damaged"):
        ka.data.PretrainedTokenizer.from_json(json.dumps(rules).encode())


def test_patterns_of_rust_are_those_of_python():
    pattern = compile_pattern(r"[^\s\p{Lu}]+|\p{Lu}\S?")
    assert pattern.findall("aÄb \x1cC") == ["a", "Äb", "\x1c", "C"]
    assert not compile_pattern(r"\s").match("\x1c")  # a space only in Python


def make_sentence_piece(**options):
    sentencepiece = pytest.importorskip("sentencepiece")
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES[:8] * 3),
        model_writer=made,
        vocab_size=100,
        minloglevel=2,
        **options,
    )
    return made.getvalue()


def test_sentinels_of_t5_follow_the_pieces():
    content = make_sentence_piece(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = ka.data.PretrainedTokenizer("t5", {"spiece.model": content}, [("text", 0), (1, 0)])
    (ids,) = tokenizer.encode(["The cats <extra_id_0> mat."])
    assert ids[-1] == 1 and 199 in ids and len(tokenizer) == 200
    assert tokenizer.decode([ids], special=True)[0].count("<extra_id_0>") == 1
    assert tokenizer.decode(tokenizer.encode(["The cats sat"])) == ["The cats sat"]
    with pytest.raises(ValueError, match="does not read pairs"):
        tokenizer(["a"], ["b"])


def test_special_tokens_in_a_text_of_t5_have_their_ids():
    content = make_sentence_piece(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = ka.data.PretrainedTokenizer("t5", {"spiece.model": content}, [("text", 0), (1, 0)])
    (cats,), (mat,) = tokenizer.encode(["The cats"]), tokenizer.encode(["mat"])
    assert tokenizer.encode(["The cats<unk> </s>mat <pad>"]) == [
        [*cats[:-1], 2, 1, *mat[:-1], 0, 1]
    ]


def test_spans_need_an_engine_with_positions():
    tokenizer = ka.data.PretrainedTokenizer("t5", {"x": make_sentence_piece()}, [("text", 0)])
    with pytest.raises(ValueError, match="of kind t5 has no positions of its tokens"):
        tokenizer.encode_spans("the cat")


def test_marian_has_a_table_of_ids_for_both_languages():
    source, target = make_sentence_piece(), make_sentence_piece(model_type="bpe")
    pieces = {}
    for content in (source, target):
        engine = engines.SentencePieceEngine(content)
        pieces |= {engine.name(i): None for i in range(engine.size)}
    names = ["</s>", "<unk>", ">>fra<<", *[p for p in pieces if p[0] != "<"], "<pad>"]
    table = json.dumps({name: i for i, name in enumerate(names)}).encode()
    files = {"vocab.json": table, "source.spm": source, "target.spm": target}
    tokenizer = ka.data.PretrainedTokenizer(
        "marian", files, [("text", 0), (0, 0)], padding_id=len(names) - 1
    )
    (ids,) = tokenizer.encode([">>fra<< The cats sat"])
    assert ids[0] == 2 and ids[-1] == 0
    assert tokenizer.encode(["<unk></s>>>fra<<The cats sat"]) == [[1, 0, *ids]]
    written = tokenizer.engine.encode_target("The cats sat")
    assert tokenizer.decode([[*written, 0]]) == ["The cats sat"]
    assert tokenizer(["cats", "The cats sat"])[0, -1] == len(names) - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_five_thousand_natural_lines(name, data_root):
    """Compare lines of news, captions and tweets in English, German and Chinese."""
    content = RULES[name]()
    library, plain = engines.LibraryEngine(content), make_plain(content)
    lines = read_natural_lines(data_root)
    assert len(lines) >= 5000
    different = [line for line in lines if plain.encode(line) != library.encode(line)]
    assert not different


def read_natural_lines(folder):
    lines = []
    for path in sorted(folder.glob("mt-*/*")) + sorted(folder.glob("lm-*/*")):
        opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else None
        if opened is None and path.suffix in (".md", ".zip", ".gz", ".parquet"):
            continue
        with opened or open(path, encoding="utf-8", errors="replace") as file:
            lines += [line.rstrip("\n") for line in itertools.islice(file, 900)]
    return lines
