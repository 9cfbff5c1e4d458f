"""Checkpoints that KerasHub writes anew give the same outputs, and the same ids of texts."""

import json

import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from tests.backends.marks import slow_on_tensorflow
from tests.pretrained import make_foreign_checkpoints as made
from tests.pretrained.test_foreign import assert_equal

pytestmark = slow_on_tensorflow


@pytest.mark.parametrize("name", made.KERAS_HUB)
def test_presets_are_what_keras_hub_makes(name, tmp_path, monkeypatch):
    pytest.importorskip("keras_hub")
    if name == "qwen-3":
        # Its fused attention, which PyTorch gets, leaves the window out (KerasHub 0.32).
        from keras_hub.src.models.qwen3 import qwen3_attention

        monkeypatch.setattr(qwen3_attention, "fused_attention_op_available", lambda: False)
    made.make_preset(name, tmp_path)
    assert_equal(tmp_path / name)
    description = ka.pretrained.describe(tmp_path / name)
    # the head for masked tokens computes otherwise than ours, but RoBERTa's
    assert [x for x in description.unused if x.startswith("task/layers")] == (
        [f"task/layers/masked_lm_head/{x}" for x in MASKED_HEAD] if name == "bert-masked" else []
    )


MASKED_HEAD = (
    *("intermediate_dense/vars/0", "intermediate_dense/vars/1"),
    *("intermediate_layer_norm/vars/0", "intermediate_layer_norm/vars/1", "vars/0"),
)


def test_shards_are_as_keras_writes_them(tmp_path):
    keras_hub = pytest.importorskip("keras_hub")
    backbone = keras_hub.models.GPT2Backbone(**made.texts())
    backbone.save_to_preset(tmp_path / "whole")
    (tmp_path / "whole" / "model.weights.h5").rename(tmp_path / "model.weights.h5")
    backbone.save_weights(tmp_path / "whole" / "model.weights.json", max_shard_size=5e-6)
    assert len(list((tmp_path / "whole").glob("*.h5"))) > 1
    ids = np.array([[5, 0, 3]])
    hidden = backbone({"token_ids": ids, "padding_mask": np.ones_like(ids)})
    expected = backbone.token_embedding(hidden, reverse=True)
    model = ka.pretrained.load(tmp_path / "whole")
    actual = ops.convert_to_numpy(model(ids))
    np.testing.assert_allclose(actual, ops.convert_to_numpy(expected), atol=1e-5)


LINES = ["the cats sat on the mat", "The Cat's mat, the end.", "a  cat\nsat: 12 mats!", "", "tha"]
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s ' s , end . a : 1 ##2 ! t ##h ##a"


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_of_word_pieces_are_those_of_keras_hub(lowercase, tmp_path):
    keras_hub = pytest.importorskip("keras_hub")
    pytest.importorskip("tensorflow_text")
    made.make_preset("bert-texts", tmp_path)
    folder = tmp_path / "bert-texts"
    theirs = keras_hub.models.BertTokenizer(vocabulary=WORDS.split(), lowercase=lowercase)
    theirs.save_to_preset(folder)
    ours = ka.pretrained.tokenizer(folder)
    lines = [*LINES, "The cät sat"]
    expected = [[2, *np.asarray(theirs(line)).tolist(), 3] for line in lines]
    assert ours.encode(lines) == expected
    assert ours(["the cat"], ["a mat"])["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1]]
    assert ka.pretrained.load(folder)(ours(LINES)).shape == (5, 4)


@pytest.mark.parametrize("name", ["GPT2Tokenizer", "RobertaTokenizer"])
def test_ids_of_bytes_are_those_of_keras_hub(name, tmp_path):
    keras_hub = pytest.importorskip("keras_hub")
    pytest.importorskip("tensorflow_text")
    tokenizers = pytest.importorskip("tokenizers")
    special = ["<s>", "<pad>", "</s>", "<mask>", "<|endoftext|>"]
    rules = tokenizers.ByteLevelBPETokenizer()
    rules.train_from_iterator(LINES * 3, vocab_size=320, special_tokens=special)
    rules.save_model(str(tmp_path))
    preset = "gpt2" if name == "GPT2Tokenizer" else "roberta-texts"
    made.make_preset(preset, tmp_path)
    entries = json.loads((tmp_path / "vocab.json").read_text())
    merges = (tmp_path / "merges.txt").read_text().splitlines()[1:]
    theirs = getattr(keras_hub.models, name)(vocabulary=entries, merges=merges)
    theirs.save_to_preset(tmp_path / preset)
    ours = ka.pretrained.tokenizer(tmp_path / preset)
    lines = [line for line in LINES if line] + [" cats  sat\t on", "Ünï cat \U0001f600"]
    expected = [np.asarray(theirs(line)).tolist() for line in lines]
    if preset == "roberta-texts":
        expected = [[0, *ids, 2] for ids in expected]
        assert ours.encode(["cat"], ["mat"])[0][-1] == 2 and ours.padding_id == 1
    assert [ids[:16] for ids in ours.encode(lines, max_length=64)] == [ids[:16] for ids in expected]


def test_ids_of_sentence_piece_are_those_of_keras_hub(tmp_path):
    keras_hub = pytest.importorskip("keras_hub")
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("tensorflow_text")
    import io

    proto = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20), model_writer=proto, vocab_size=31, pad_id=-1,
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    made.make_preset("llama", tmp_path)
    theirs = keras_hub.models.LlamaTokenizer(proto=proto.getvalue())
    theirs.save_to_preset(tmp_path / "llama")
    ours = ka.pretrained.tokenizer(tmp_path / "llama")
    expected = [[1, *np.asarray(theirs(line)).tolist()] for line in LINES]
    assert ours.encode(LINES) == expected
