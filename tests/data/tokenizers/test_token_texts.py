"""The texts of tokens, one after the other, are what `decode` returns."""

import json

import numpy as np
import pytest

import keras_attention as ka

LINES = [
    "The cats sat on the mat, isn't it? I'll say: 3.50!",
    "Ça va? Naïve cafés, 日本語のテキスト",
    'a {"key": [1, 2]} of\ttabs   and spaces 😀',
]


def join(tokenizer, ids):
    """Return the text of ids, as `ka.generation.TokenTexts` defines it."""
    texts = ka.generation.TokenTexts.of(tokenizer)
    later, first, result = texts.encode(), texts.encode_first(), b""
    for i in ids:
        result += later[i] if result else first[i]
    return result


def make_subwords(**options):
    size = 330 if options.get("byte_fallback") else 150
    return ka.data.Subwords.build(LINES * 3, size, shrink=True, **options)


def train(model, trainer, decoder, pre_tokenizer, size=400, **options):
    tokenizers = pytest.importorskip("tokenizers")
    rules = tokenizers.Tokenizer(getattr(tokenizers.models, model)(**options))
    rules.pre_tokenizer = getattr(tokenizers.pre_tokenizers, pre_tokenizer)()
    rules.decoder = decoder(tokenizers.decoders)
    special = ["[PAD]", "[UNK]", "[SEP]"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet() if "Byte" in pre_tokenizer else []
    unknown = {"unk_token": "[UNK]"} if model == "Unigram" else {}
    trainer = getattr(tokenizers.trainers, trainer)(
        vocab_size=size,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=alphabet,
        **unknown,
    )
    rules.train_from_iterator(LINES * 3, trainer)
    return rules


def make_word_piece():
    rules = train("WordPiece", "WordPieceTrainer", lambda d: d.WordPiece(), "BertPreTokenizer",
                  unk_token="[UNK]")  # fmt: skip
    return ka.data.PretrainedTokenizer.from_json(rules.to_str().encode())


def make_byte_level():
    rules = train("BPE", "BpeTrainer", lambda d: d.ByteLevel(), "ByteLevel")
    return ka.data.PretrainedTokenizer.from_json(rules.to_str().encode())


def make_metaspace():
    rules = train("Unigram", "UnigramTrainer", lambda d: d.Metaspace(), "Metaspace")
    return ka.data.PretrainedTokenizer.from_json(rules.to_str().encode())


def make_llama():
    """Return a tokenizer with the decoder of Llama 2: bytes, and one space dropped in front."""

    def decoder(d):
        steps = [d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]
        return d.Sequence(steps)

    rules = json.loads(
        train("BPE", "BpeTrainer", decoder, "Metaspace", byte_fallback=True).to_str()
    )
    vocabulary = rules["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    return ka.data.PretrainedTokenizer.from_json(json.dumps(rules).encode())


def make_t5():
    proto = make_subwords(byte_fallback=False).proto
    return ka.data.PretrainedTokenizer("t5", {"spiece.model": proto}, [("text", 0)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ka.data.Characters.build(LINES),
        lambda: ka.data.Words.build(LINES),
        make_subwords,
        lambda: make_subwords(byte_fallback=True, model_type="bpe"),
        lambda: make_subwords(mask_token=True, lowercase=True),
        make_word_piece,
        make_byte_level,
        make_metaspace,
        make_llama,
        make_t5,
    ],
    ids="characters words subwords bytes mask word_piece byte_level metaspace llama t5".split(),
)
def test_the_texts_of_tokens_make_the_decoded_text(make):
    tokenizer, random = make(), np.random.default_rng(0)
    texts = ka.generation.TokenTexts.of(tokenizer)
    later, first = texts.encode(), texts.encode_first()
    assert len(texts) == len(tokenizer)
    assert not any(later[i] or first[i] for i in tokenizer.special_ids)
    assert sum(text is None for text in later) <= len(tokenizer.special_ids) + 1
    usable = np.flatnonzero([bool(text) for text in later])
    begins = np.flatnonzero([bool(text) for text in first])
    for _ in range(200):
        begin, *following = random.choice(begins), *random.choice(usable, size=random.integers(8))
        ids = [int(begin), *map(int, following)]
        written = join(tokenizer, ids)
        try:
            text = written.decode()
        except UnicodeDecodeError:  # a part of a character
            continue
        assert tokenizer.decode([ids]) == [text]
    for line in LINES:
        ids = [int(i) for i in tokenizer.encode_plain(line)]
        if all(later[i] is not None for i in ids) and first[ids[0]] is not None:
            assert [join(tokenizer, ids).decode()] == tokenizer.decode([ids])
