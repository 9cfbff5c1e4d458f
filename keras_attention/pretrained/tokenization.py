"""`tokenizer`: loads the tokenizer of a checkpoint."""

from keras_attention.data.tokenizers.engines import parse_rules
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.files.io import read_bytes
from keras_attention.pretrained.architecture import find_architecture, read_builder
from keras_attention.pretrained.checkpoint import (
    CONFIG,
    CheckpointError,
    read_content,
    report_invalid,
)
from keras_attention.pretrained.keras_hub import Preset, read_checkpoint
from keras_attention.pretrained.keras_hub_tokenizers import make_tokenizer
from keras_attention.pretrained.loading import find_folder
from keras_attention.pretrained.sentence_transformers import read_length
from keras_attention.pretrained.settings import read_settings

FILE, SETTINGS, VOCABULARY = "tokenizer.json", "tokenizer_config.json", "vocab.txt"
MARIAN = ("vocab.json", "source.spm", "target.spm")
SENTENCE_PIECES = {"t5": "spiece.model"}  # model_type -> SentencePiece file with the model's ids
PADDING = ("source_padding_id", "padding_id", "target_padding_id")  # keywords of builders
LONGEST = 1_000_000  # files say 10 ** 30 if the length is not limited


def tokenizer(folder, *, revision=None, max_length=None):
    """Load the tokenizer of a checkpoint as a `ka.data.PretrainedTokenizer`.

    The function reads `tokenizer.json`. Without this file it reads `vocab.txt` (BERT),
    `spiece.model` (T5), or `vocab.json`, `source.spm` and `target.spm` (Marian). Folders that
    KerasHub saved have their files in `assets/tokenizer`.

    Args:
        folder: path of a folder with the files, or the id of a repository on the Hugging Face Hub.
        revision: str, a branch, tag or commit of the repository. None loads the default branch.
        max_length: int, the maximum number of tokens per input. None uses the limit in the files.

    Raises:
        CheckpointError: the files are missing or damaged.

    Example:

        tokenizer = ka.pretrained.tokenizer("bert-base-uncased")
        inputs = tokenizer(["the cat"])  # a dict of arrays for the model
    """
    folder = find_folder(folder, revision)
    checkpoint = read_checkpoint(folder)
    path = folder / SETTINGS
    settings = read_content(path) if path.is_file() else {}
    with report_invalid(folder):
        keywords = _read_text_keywords(checkpoint, settings)
    if max_length is None:
        limit = settings.get("model_max_length")
        limits = [limit if type(limit) is int and 0 < limit < LONGEST else None]
        limits += [keywords.get("max_length"), read_length(folder)]
        max_length = min((limit for limit in limits if limit), default=None)
    options = {
        "padding_id": next((keywords[name] for name in PADDING if name in keywords), 0),
        "has_segments": keywords.get("num_segments") is not None,
        "max_length": max_length,
    }
    with report_invalid(folder):
        if isinstance(checkpoint, Preset):
            return make_tokenizer(folder, options)
        return _make(folder, checkpoint.config, settings, options)


def _read_text_keywords(checkpoint, settings):
    """Return a dict with the settings of a checkpoint's text model, such as its padding id.

    `settings` is the content of `tokenizer_config.json`.
    """
    architecture = find_architecture(checkpoint.model_type, checkpoint.folder / CONFIG)
    several = isinstance(read_builder(checkpoint), tuple)
    task = "text_encoder" if several else None  # the text tower
    keywords = read_settings(checkpoint, task).keywords
    if architecture.read_padding is not None:  # the model attends to padding
        padding = _find_padding(checkpoint.folder / FILE, settings.get("pad_token"))
        if padding is None:
            padding = architecture.read_padding(checkpoint.config)
        keywords["source_padding_id"] = padding
    return keywords


def _find_padding(path, token):
    """Return the id of the padding token in `tokenizer.json`, or None if it is missing.

    `path` is the path of this file. `token` is the padding token in `tokenizer_config.json`, a str,
    a dict or None.
    """
    token = token.get("content") if isinstance(token, dict) else token
    if token is None or not path.is_file():
        return None
    entries = parse_rules(read_bytes(path)).get("added_tokens")
    ids = [entry.get("id") for entry in entries or () if entry.get("content") == token]
    return ids[0] if ids and type(ids[0]) is int else None


def _make(folder, config, settings, options):
    kind = config.get("model_type")
    if (path := folder / FILE).is_file():
        return PretrainedTokenizer.from_json(read_bytes(path), **options)
    if kind == "bert" and (path := folder / VOCABULARY).is_file():
        entries = read_bytes(path).decode("utf-8").splitlines()
        lowercase = bool(settings.get("do_lower_case", True))
        return PretrainedTokenizer.from_vocabulary(entries, lowercase=lowercase, **options)
    end = config.get("eos_token_id", 1)
    if kind in SENTENCE_PIECES and (path := folder / SENTENCE_PIECES[kind]).is_file():
        return PretrainedTokenizer(kind, {path.name: read_bytes(path)},
                                   [("text", 0), (end, 0)], **options)  # fmt: skip
    if kind == "marian" and all((folder / name).is_file() for name in MARIAN):
        files = {name: read_bytes(folder / name) for name in MARIAN}
        return PretrainedTokenizer(kind, files, [("text", 0), (end, 0)], **options)
    raise CheckpointError(
        f"{folder} holds no {FILE}. Write it with "
        "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
    )
