"""`tokenizer`: the tokenizer of a checkpoint, of whichever of the usual files lie there."""

from keras_attention.data.tokenizers.engines import parse_rules
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.files.io import read_bytes
from keras_attention.pretrained.architecture import find_architecture, read_builder
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError, read_content
from keras_attention.pretrained.keras_hub import Preset, read_checkpoint
from keras_attention.pretrained.keras_hub_tokenizers import make_tokenizer
from keras_attention.pretrained.loading import find_folder
from keras_attention.pretrained.sentence_transformers import read_length
from keras_attention.pretrained.settings import read_settings

FILE, SETTINGS, VOCABULARY = "tokenizer.json", "tokenizer_config.json", "vocab.txt"
MARIAN = ("vocab.json", "source.spm", "target.spm")
SENTENCE_PIECES = {"t5": "spiece.model"}  # model_type -> file; others' ids are not the file's
PADDING = ("source_padding_id", "padding_id", "target_padding_id")  # of what is read, or written
LONGEST = 1_000_000  # files say 10 ** 30 where nothing limits a text


def tokenizer(folder, *, revision=None, max_length=None):
    """Return the `ka.data.PretrainedTokenizer` of a checkpoint.

    It is made of `tokenizer.json`; else of `vocab.txt` (BERT), `spiece.model` (T5), or `vocab.json`
    with `source.spm` and `target.spm` (Marian); of a preset of KerasHub of its `assets/tokenizer`.

    Args:
        folder, revision: as for `load`.
        max_length: int, the tokens of a text at most; None for what the files say.

    Raises:
        CheckpointError: there is no such file, or it is damaged.

    ```python
    import json
    import pathlib
    import tempfile
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    size = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    size |= {"intermediate_size": 8, "max_position_embeddings": 16, "vocab_size": 6}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **size}))
    (folder / "vocab.txt").write_text("[PAD] [UNK] [CLS] [SEP] the cat".replace(" ", "\\n"))
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    inputs = ka.pretrained.tokenizer(folder)(["the cat"])
    assert inputs["token_ids"].tolist() == [[2, 4, 5, 3]]
    ```
    """
    folder = find_folder(folder, revision)
    checkpoint = read_checkpoint(folder)
    path = folder / SETTINGS
    said = read_content(path) if path.is_file() else {}
    try:
        keywords = _read_texts(checkpoint, said)
    except CheckpointError:
        raise
    except (AttributeError, TypeError, ValueError) as error:  # of tokenizer.json
        raise CheckpointError(f"{folder}: {error}") from error
    if max_length is None:
        limit = said.get("model_max_length")
        limits = [limit if type(limit) is int and 0 < limit < LONGEST else None]
        limits += [keywords.get("max_length"), read_length(folder)]
        max_length = min((limit for limit in limits if limit), default=None)
    options = {
        "padding_id": next((keywords[name] for name in PADDING if name in keywords), 0),
        "has_segments": keywords.get("num_segments") is not None,
        "max_length": max_length,
    }
    try:
        if isinstance(checkpoint, Preset):
            return make_tokenizer(folder, options)
        return _make(folder, checkpoint.config, said, options)
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder}: {error}") from error


def _read_texts(checkpoint, said):
    """The keywords of the builder of a checkpoint that reads texts, and what fills them up."""
    architecture = find_architecture(checkpoint.model_type, checkpoint.folder / CONFIG)
    several = isinstance(read_builder(checkpoint), tuple)
    task = "text_encoder" if several else None  # the tower of texts
    keywords = read_settings(checkpoint, task).keywords
    if architecture.read_padding is not None:  # what fills texts up is a token to the model
        padding = _find_padding(checkpoint.folder / FILE, said.get("pad_token"))
        if padding is None:
            padding = architecture.read_padding(checkpoint.config)
        keywords["source_padding_id"] = padding
    return keywords


def _find_padding(path, token):
    """The id of the padding token, a str or its entry, by `tokenizer.json`; None if not there."""
    token = token.get("content") if isinstance(token, dict) else token
    if token is None or not path.is_file():
        return None
    entries = parse_rules(read_bytes(path)).get("added_tokens")
    found = [entry.get("id") for entry in entries or () if entry.get("content") == token]
    return found[0] if found and type(found[0]) is int else None


def _make(folder, config, said, options):
    kind = config.get("model_type")
    if (path := folder / FILE).is_file():
        return PretrainedTokenizer.from_json(read_bytes(path), **options)
    if kind == "bert" and (path := folder / VOCABULARY).is_file():
        entries = read_bytes(path).decode("utf-8").splitlines()
        lowercase = bool(said.get("do_lower_case", True))
        return PretrainedTokenizer.from_vocabulary(entries, lowercase=lowercase, **options)
    end = config.get("eos_token_id", 1)
    if kind in SENTENCE_PIECES and (path := folder / SENTENCE_PIECES[kind]).is_file():
        return PretrainedTokenizer(kind, {path.name: read_bytes(path)},
                                   [("text", 0), (end, 0)], **options)  # fmt: skip
    if kind == "marian" and all((folder / name).is_file() for name in MARIAN):
        files = {name: read_bytes(folder / name) for name in MARIAN}
        return PretrainedTokenizer(kind, files, [("text", 0), (end, 0)], **options)
    raise CheckpointError(
        f"{folder} holds no {FILE}, which is the kind that is read: "
        "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes it."
    )
