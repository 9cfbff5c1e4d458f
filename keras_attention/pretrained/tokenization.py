"""`tokenizer`: texts as the inputs of a checkpoint's model, by the tokenizer beside it."""

import pathlib

import numpy as np

from keras_attention.data.files import read_json
from keras_attention.pretrained.checkpoint import Checkpoint, CheckpointError
from keras_attention.pretrained.loading import find_folder, read_settings

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
LONGEST = 1_000_000  # files say 10 ** 30 where nothing limits a text


class Tokenizer:
    """Texts to ids, with the special tokens of a checkpoint, and back.

    Made by `tokenizer`.

    Args:
        rules: a `tokenizers.Tokenizer`.
        padding_id: int, what fills short rows up; None where every id is a token.
        has_segments: bool, whether the model reads `"segment_ids"`, too.
        max_length: int, the tokens of a text at most, special ones included; None for no limit.
    """

    def __init__(self, rules, *, padding_id=0, has_segments=False, max_length=None):
        self.rules, self.padding_id = rules, padding_id
        self.has_segments, self.max_length = has_segments, max_length
        rules.no_padding()

    def __len__(self):
        return self.rules.get_vocab_size()

    def encode(self, texts, pairs=None, *, max_length=None):
        """A list of ids for each text, special tokens included; what is too long is cut.

        Args:
            texts: list of str. pairs: list of as many str, the second text of each; or None.
            max_length: int, the tokens of a text (or of a pair) at most; None for the tokenizer's.
        """
        return [found.ids for found in self._encode(texts, pairs, max_length)]

    def __call__(self, texts, pairs=None, *, max_length=None):
        """The inputs of the model: int32 ids (B, T), or a dict with `"segment_ids"` (B, T), too.

        Args: as for `encode`.

        Raises:
            ValueError: rows differ in length, and no id is padding: use `encode`.
        """
        found = self._encode(texts, pairs, max_length)
        ids = self._stack([one.ids for one in found], self.padding_id)
        if not self.has_segments:
            return ids
        segments = self._stack([one.type_ids for one in found], 0)
        return {"token_ids": ids, "segment_ids": segments}

    def decode(self, ids, *, special=False):
        """The texts of ids, a list of str.

        Args:
            ids: int (B, T), or lists of ids. special: bool, whether special tokens are shown.
        """
        rows = [[int(i) for i in row if i != self.padding_id] for row in ids]
        return self.rules.decode_batch(rows, skip_special_tokens=not special)

    def _encode(self, texts, pairs, max_length):
        if isinstance(texts, str) or isinstance(pairs, str):
            raise ValueError("Tokenizer: expected a list of texts, and was given a str.")
        texts = list(texts)
        if pairs is not None:
            pairs = list(pairs)
            if len(pairs) != len(texts):
                raise ValueError(f"{len(texts)} texts and {len(pairs)} pairs: expected as many.")
            texts = list(zip(texts, pairs, strict=True))
        length = max_length or self.max_length
        if length is None:
            self.rules.no_truncation()
        else:
            special = self.rules.num_special_tokens_to_add(pairs is not None)
            if length <= special:
                raise ValueError(
                    f"max_length={length}: {special} of the tokens are special, which leaves none "
                    f"for the text. Give at least {special + 1}."
                )
            self.rules.enable_truncation(length)
        return self.rules.encode_batch(texts)

    def _stack(self, rows, padding_id):
        lengths = {len(row) for row in rows}
        if padding_id is None and len(lengths) > 1:
            raise ValueError(
                f"Texts of {min(lengths)} to {max(lengths)} tokens, and every id is a token to "
                "this model: none fills short ones up. Use encode(), whose lists generate() takes."
            )
        stacked = np.full((len(rows), max(lengths, default=0)), padding_id or 0, "int32")
        for line, row in zip(stacked, rows, strict=True):
            line[: len(row)] = row
        return stacked


def tokenizer(folder, *, revision=None, max_length=None):
    """The `Tokenizer` of a checkpoint, by its `tokenizer.json`: of the library `tokenizers`.

    Args:
        folder, revision: as for `load`.
        max_length: int, the tokens of a text at most; None for what the files say.

    Raises:
        CheckpointError: there is no `tokenizer.json`, or it is damaged.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "Tokenizers of checkpoints need the library tokenizers: "
            "pip install 'keras-attention-zoo[pretrained]'."
        ) from error
    folder = find_folder(folder, revision)
    path = folder / FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {FILE}, which is the kind that is read: "
            "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes it."
        )
    try:
        rules = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise CheckpointError(f"{path} is damaged: {str(error)[:200]}") from error
    keywords = read_settings(Checkpoint(folder))[3]
    if max_length is None:
        limits = [_read_limit(folder), keywords.get("max_length")]
        max_length = min((limit for limit in limits if limit), default=None)
    padding = keywords.get("source_padding_id", keywords.get("padding_id", 0))
    has_segments = keywords.get("num_segments") is not None
    return Tokenizer(rules, padding_id=padding, has_segments=has_segments, max_length=max_length)


def _read_limit(folder):
    """What `tokenizer_config.json` says of the longest text, or None."""
    path = pathlib.Path(folder) / SETTINGS
    try:
        said = read_json(path).get("model_max_length") if path.is_file() else None
    except (AttributeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return said if type(said) is int and 0 < said < LONGEST else None
