"""`make_tokenizer_file`: a tokenizer as a file that LiteRT-LM reads."""

import json

from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import SPECIAL, UNKNOWN_ID, Subwords

WORD = "\u2581"  # begins each word in the file, so that an engine can decode words one by one


def make_tokenizer_file(tokenizer):
    """Convert a tokenizer to the content of a file.

    Args:
        tokenizer: `Characters`, `Words`, `Subwords`, or a `PretrainedTokenizer` with a
            `tokenizer.json` or a SentencePiece model.

    Returns:
        A tuple of the suffix of the file and its content, bytes: `".json"` for a `tokenizer.json`,
        and `".model"` for SentencePiece.
    """
    if isinstance(tokenizer, Subwords):
        return ".model", tokenizer.proto
    if isinstance(tokenizer, PretrainedTokenizer):
        suffixes = {"tokenizer.json": ".json", "sentencepiece": ".model"}
        if tokenizer.kind in suffixes:
            return suffixes[tokenizer.kind], next(iter(tokenizer.files.values()))
    if isinstance(tokenizer, (Characters, Words)):
        rules = _write_rules(tokenizer)
        return ".json", json.dumps(rules, ensure_ascii=False).encode("utf-8")
    raise ValueError(
        f"{tokenizer!r} is not a tokenizer that LiteRT-LM reads. Expected Characters, Words, "
        "Subwords, or a checkpoint's tokenizer.json or SentencePiece model. Train the model with "
        "one of these."
    )


def _write_rules(tokenizer):
    """Return the content of a `tokenizer.json`, a dict, with the ids of `Characters` or `Words`."""
    before, shown = "", "\ufffd"
    pieces = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated"}
    pieces["invert"] = False
    if isinstance(tokenizer, Words):
        before, shown = WORD, " \ufffd"
        mark = {"type": "Metaspace", "replacement": WORD, "prepend_scheme": "always"}
        steps = [{"type": "WhitespaceSplit"}, {**mark, "split": False}]
        pieces = {"type": "Sequence", "pretokenizers": steps}
    entries = enumerate(tokenizer.entries)
    unknown = SPECIAL[UNKNOWN_ID]
    # Each token is replaced on its own, so that special tokens write the same as in Keras.
    silent = "|".join(name for name in SPECIAL if name != unknown)
    decoders = [
        {"type": "Replace", "pattern": {"Regex": f"^({silent})$"}, "content": ""},
        {"type": "Replace", "pattern": {"Regex": f"^{unknown}$"}, "content": shown},
        *(
            [{"type": "Replace", "pattern": {"Regex": f"^{WORD}"}, "content": " "}]
            if before
            else []
        ),
        {"type": "Fuse"},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pieces,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "WordLevel",
            "vocab": {x if i < len(SPECIAL) else before + x: i for i, x in entries},
            "unk_token": unknown,
        },
    }
