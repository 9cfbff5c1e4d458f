"""`make_tokenizer`: loads the tokenizers of KerasHub: WordPiece, byte-level BPE, SentencePiece.

The vocabulary comes from the files in the folder `assets/tokenizer`, the argument `assets`.
`config` is the config of KerasHub's tokenizer. `ka.data.PretrainedTokenizer` normalizes and splits
text.
"""

import json

from keras_attention.data.tokenizers import engines
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.files.io import parse_json, read_bytes, read_json
from keras_attention.pretrained.checkpoint import CheckpointError

SETTINGS, ASSETS = "tokenizer.json", "assets/tokenizer"
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)


def make_tokenizer(folder, options):
    """Return the tokenizer of a folder that KerasHub saved, as a `PretrainedTokenizer`.

    Args:
        folder: pathlib.Path of the folder.
        options: dict of the arguments `padding_id`, `has_segments` and `max_length` of
            `PretrainedTokenizer`.

    Raises:
        CheckpointError: a file is missing, or the class of the tokenizer is not supported.
        ValueError: a file is damaged.
    """
    if not (folder / SETTINGS).is_file():
        raise CheckpointError(
            f"{folder} holds no {SETTINGS}. Save the tokenizer beside the model with KerasHub's "
            "tokenizer.save_to_preset(folder)."
        )
    content = read_json(folder / SETTINGS)
    kind = content.get("class_name") if isinstance(content, dict) else None
    config = content.get("config") if isinstance(content, dict) else None
    if kind not in CLASSES:
        raise CheckpointError(
            f"{folder / SETTINGS} has the class {kind!r:.60}: expected one of "
            f"{', '.join(CLASSES)}. Tokenize with KerasHub, and call the model on these ids."
        )
    if not isinstance(config, dict):
        raise CheckpointError(f"{folder / SETTINGS} is damaged: expected a class_name and config.")
    return CLASSES[kind](folder / ASSETS, config, options)


def _make_word_piece(assets, config, options):
    """Return BERT's tokenizer. `config` says whether to lowercase and to strip accents."""
    entries = _read_asset(assets, "vocabulary.txt").decode("utf-8").splitlines()
    rules = engines.write_word_piece(entries, bool(config.get("lowercase", False)))
    rules["normalizer"]["strip_accents"] = bool(config.get("strip_accents", False))
    return PretrainedTokenizer.from_json(_encode(rules), **options)


def _make_gpt2(assets, config, options):
    rules = _write_byte_pairs(assets, config, ["<|endoftext|>"])
    return PretrainedTokenizer.from_json(_encode(rules), **options)


def _make_roberta(assets, config, options):
    """Return RoBERTa's tokenizer, which encloses text in `<s>` and `</s>`."""
    rules = _write_byte_pairs(assets, config, ["<s>", "<pad>", "</s>", "<mask>"])
    begin, end = (rules["model"]["vocab"][name] for name in ("<s>", "</s>"))
    rules["post_processor"] = {
        "type": "RobertaProcessing",
        "sep": ["</s>", end],
        "cls": ["<s>", begin],
        "trim_offsets": True,
        "add_prefix_space": False,
    }
    return PretrainedTokenizer.from_json(_encode(rules), **options)


def _write_byte_pairs(assets, config, special):
    """Return byte-level BPE rules as a dict in the format of Hugging Face's `tokenizer.json`.

    `special` is a list of the special tokens. `assets` is the path of the folder with the
    vocabulary and the rules. `config` is a dict of settings.
    """
    ids = parse_json(_read_asset(assets, "vocabulary.json").decode("utf-8"))
    lines = _read_asset(assets, "merges.txt").decode("utf-8").split("\n")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    if not isinstance(ids, dict) or not all(len(pair) == 2 for pair in merges):
        raise ValueError("vocabulary.json is not an object, or a line of merges.txt is not a pair.")
    if missing := [name for name in special if name not in ids]:
        raise ValueError(f"vocabulary.json has no piece {missing[0]}.")
    added = [{"id": ids[name], "content": name, "special": True, **FLAGS} for name in special]
    bytes_of_text = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    bytes_of_text["add_prefix_space"] = bool(config.get("add_prefix_space", False))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "normalizer": None,
        "pre_tokenizer": bytes_of_text,
        "post_processor": None,
        "decoder": bytes_of_text,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": ids,
            "merges": merges,
        },
    }


def _make_sentence_piece(assets, config, options):
    """Return the tokenizer of Llama, Mistral or Gemma, which puts the start token before text."""
    files = {"vocabulary.spm": _read_asset(assets, "vocabulary.spm")}
    begin = engines.make_engine("sentencepiece", files).processor.bos_id()
    if begin < 0:
        raise ValueError("vocabulary.spm has no start token.")
    return PretrainedTokenizer("sentencepiece", files, [(begin, 0), ("text", 0)], **options)


def _read_asset(assets, name):
    if not (assets / name).is_file():
        raise CheckpointError(f"{assets} holds no {name}.")
    return read_bytes(assets / name)


def _encode(rules):
    return json.dumps(rules, ensure_ascii=False).encode()


CLASSES = {
    "BertTokenizer": _make_word_piece,
    "DistilBertTokenizer": _make_word_piece,
    "ElectraTokenizer": _make_word_piece,
    "RobertaTokenizer": _make_roberta,
    "GPT2Tokenizer": _make_gpt2,
    "LlamaTokenizer": _make_sentence_piece,
    "MistralTokenizer": _make_sentence_piece,
    "GemmaTokenizer": _make_sentence_piece,
}
