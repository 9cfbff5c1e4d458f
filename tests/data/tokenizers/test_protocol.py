import pytest

import keras_attention as ka
from keras_attention.data.tokenizers.protocol import ReadingTokenizer, WritingTokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat"]


def make_pretrained():
    pytest.importorskip("tokenizers")
    return ka.data.PretrainedTokenizer.from_vocabulary(PIECES, lowercase=True)


@pytest.mark.parametrize("make", [lambda: ka.data.Vocabulary.build(["cat"]), make_pretrained])
def test_tokenizers_that_read(make):
    tokenizer = make()
    assert isinstance(tokenizer, ReadingTokenizer)
    ids, begins = tokenizer.encode_words(["cat", "cat"])
    assert len(begins) == 2 and tokenizer.pieces(ids)[begins[1]] == "cat"
    assert tokenizer.encode_spans("a cat")[1].tolist() == [[0, 1], [2, 5]]
    assert len(tokenizer.split("cat")) == tokenizer.count("cat")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ka.data.Characters.build(["cat"]),
        lambda: ka.data.Words.build(["cat"]),
        lambda: ka.data.Subwords.build(["the cat sat"] * 3, 13),
        make_pretrained,
    ],
)
def test_tokenizers_that_write(make):
    tokenizer = make()
    assert isinstance(tokenizer, WritingTokenizer)
    assert tokenizer.decode([tokenizer.encode_plain("cat")]) == ["cat"]
    (source,) = tokenizer.encode_sources(["cat"])
    assert source.dtype == "int32" and len(source) > len(tokenizer.encode_plain("cat"))
