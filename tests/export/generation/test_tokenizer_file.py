import json

import pytest
import tokenizers

import keras_attention as ka
from keras_attention.export.generation.tokenizer_file import make_tokenizer_file


@pytest.mark.parametrize("kind", [ka.data.Characters, ka.data.Words])
def test_a_list_of_entries_becomes_a_tokenizer_json(kind):
    tokenizer = kind.build(["the cat\nsaw <a> cat", "übrigens, the \U0001f600"])
    suffix, content = make_tokenizer_file(tokenizer)
    library = tokenizers.Tokenizer.from_str(content.decode("utf-8"))
    for text in ["the cat saw a", "\n cat\tthe ", "unknown ¿", "<a> 😀 <pad>"]:
        assert library.encode(text).ids == tokenizer.encode([text])[0].tolist()
    ids = [0, 2, *tokenizer.encode(["the cat ¿ saw"])[0].tolist()]
    (expected,) = tokenizer.decode([ids])
    assert suffix == ".json" and library.decode(ids).lstrip() == expected
    # An engine decodes ids one by one, and joins their texts.
    assert "".join(library.decode([i]) for i in [*ids, 3]).lstrip() == expected


def test_files_of_checkpoints_and_subwords_are_not_changed():
    subwords = ka.data.Subwords.build(["the cat sat", "the cats sit"] * 3, 16)
    assert make_tokenizer_file(subwords) == (".model", subwords.proto)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the"]
    checkpoint = ka.data.PretrainedTokenizer.from_vocabulary(pieces, lowercase=True)
    suffix, content = make_tokenizer_file(checkpoint)
    assert suffix == ".json" and json.loads(content)["model"]["type"] == "WordPiece"
    sentencepiece = ka.data.PretrainedTokenizer(
        "sentencepiece", {"a": subwords.proto}, [("text", 0)]
    )
    assert make_tokenizer_file(sentencepiece) == (".model", subwords.proto)


def test_tokenizers_of_encoder_decoders_are_refused():
    proto = ka.data.Subwords.build(["the cat sat", "the cats sit"] * 3, 16).proto
    t5 = ka.data.PretrainedTokenizer("t5", {"spiece.model": proto}, [("text", 0)])
    with pytest.raises(ValueError, match="not a tokenizer that LiteRT-LM reads. Expected"):
        make_tokenizer_file(t5)
