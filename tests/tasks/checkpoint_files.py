"""Tiny checkpoints with tokenizers and picture settings beside the weights."""

import io
import json
import shutil

import pytest

from tests.pretrained.make_checkpoints import FOLDER, V

TEXT = "the cat sat on the mat. a dog sat on a cat. "


def copy_checkpoint(name, folder, **config):
    """Copy a checkpoint, with changes of its `config.json`."""
    shutil.copytree(FOLDER / name, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | config))
    return folder


def write_byte_bpe(folder, *special, last=(), text=TEXT, post_processor=None):
    """Write a `tokenizer.json` of byte BPE. Special tokens come first, and those of `last` last."""
    tokenizers = pytest.importorskip("tokenizers")
    merges = [("t", "h"), ("th", "e"), ("a", "t"), ("o", "n"), ("Ġ", "the"), ("c", "at")]
    bytes_of_letters = text.replace(" ", "Ġ").replace("é", "Ã©")
    letters = [*dict.fromkeys(bytes_of_letters)]
    pieces = [*special, *letters, *("".join(pair) for pair in merges)]
    pieces = [*pieces[: V - len(last)], *last]
    merges = [pair for pair in merges if {*pair, "".join(pair)} <= {*pieces}]
    ids = {piece: i for i, piece in enumerate(pieces)}
    rules = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=merges))
    rules.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = tokenizers.decoders.ByteLevel()
    if post_processor:
        rules.post_processor = post_processor(tokenizers.processors)
    rules.add_special_tokens([*special, *last])
    rules.save(str(folder / "tokenizer.json"))
    return folder


def make_gpt2(folder, **config):
    """Make a GPT-2 whose ids are all tokens. The last one ends texts."""
    return write_byte_bpe(copy_checkpoint("gpt2", folder, **config), last=["<|endoftext|>"])


def make_llama(folder, **generation):
    """Make a Llama whose texts begin with `<s>` and end with one of several ids."""
    copy_checkpoint("llama-2", folder)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [2, 5], **generation})
    )

    def begin(processors):
        return processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])

    return write_byte_bpe(folder, "<unk>", "<s>", "</s>", post_processor=begin)


def make_bart(folder, **config):
    def surround(processors):
        return processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)

    copy_checkpoint("bart", folder, **config)
    return write_byte_bpe(folder, "<s>", "<pad>", "</s>", "<unk>", post_processor=surround)


def make_roberta(folder):
    def surround(processors):
        return processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)

    copy_checkpoint("roberta-masked", folder)
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    return write_byte_bpe(folder, *special, post_processor=surround)


def make_bert(folder):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s"]
    copy_checkpoint("bert-masked", folder)
    (folder / "vocab.txt").write_text("\n".join([*pieces, "a", "dog", "."]))
    return folder


def make_sentence_piece(**options):
    sentencepiece = pytest.importorskip("sentencepiece")
    made = io.BytesIO()
    options = {"hard_vocab_limit": False, "vocab_size": 24, "minloglevel": 2} | options
    lines = [f"{line}." for line in TEXT.split(". ") if line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9), model_writer=made, **options
    )
    return made.getvalue()


def make_t5(folder, **config):
    copy_checkpoint("t5", folder, **config)
    content = make_sentence_piece(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "spiece.model").write_bytes(content)
    return folder


def make_marian(folder, **config):
    from keras_attention.data.tokenizers.engines import SentencePieceEngine

    copy_checkpoint("marian", folder, **config)
    files = {
        "source.spm": make_sentence_piece(),
        "target.spm": make_sentence_piece(model_type="char"),
    }
    pieces = {}
    for name, content in files.items():
        (folder / name).write_bytes(content)
        engine = SentencePieceEngine(content)
        pieces |= {engine.name(i): None for i in range(engine.size)}
    names = ["</s>", "<unk>", *[piece for piece in pieces if piece[0] != "<"]][: V - 1]
    ids = {name: i for i, name in enumerate(names)} | {"<pad>": V - 1}
    (folder / "vocab.json").write_text(json.dumps(ids))
    return folder


def make_pictures(name, folder, processing=(), **config):
    """Make a checkpoint of images with a `preprocessor_config.json`."""
    return write_picture_settings(copy_checkpoint(name, folder, **config), processing)


def write_picture_settings(folder, processing=()):
    """Write a `preprocessor_config.json`. `processing` has other settings than the usual ones."""
    settings = {
        "do_resize": True,
        "size": {"height": 12, "width": 12},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.2, 0.25, 0.5],
        "image_processor_type": "ViTImageProcessor",
    }
    settings |= dict(processing)
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder
