"""`Subwords`: a tokenizer that uses SentencePiece, and functions that all tokenizers share."""

import dataclasses
import functools
import io
import re

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.files.extras import (
    import_keras_hub,
    import_sentencepiece,
    import_sentencepiece_messages,
)
from keras_attention.files.io import prefix_errors, read_bytes, write_whole

PADDING_ID, UNKNOWN_ID, BEGIN_ID, END_ID = range(4)


def check_texts(caller, texts):
    """Return `texts` as a list. Raise a ValueError if `texts` is a single str.

    `caller` is the function that the message names.
    """
    if isinstance(texts, str):
        raise ValueError(f"{caller}: {texts[:40]!r} is one text, expected a list of str: [text].")
    return list(texts)


def cut_at_end(ids):
    """Return the ids before the first end id, a list of int without padding and begin ids."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"Ids of shape {ids.shape} and dtype {ids.dtype}: expected a list of int for each text."
        )
    ends = np.flatnonzero(ids == END_ID)
    ids = ids[: ends[0]] if ends.size else ids
    return ids[(ids != PADDING_ID) & (ids != BEGIN_ID)].tolist()


def check_ids(ids, size):
    """Return `ids`, a list of int. Raise a ValueError if an id is not in range(size)."""
    if wrong := [i for i in ids if not 0 <= i < size]:
        raise ValueError(f"The id {wrong[0]} is not in the vocabulary, which has 0 to {size - 1}.")
    return ids


SPECIAL = ("<pad>", "<unk>", "<begin>", "<end>")
MASK_TOKEN = "[MASK]"  # BERT's
MASK_ID = 4  # in tokenizers built with mask_token=True
MODEL_TYPES = ("unigram", "bpe")


class OwnTokenizer:
    """Base class of `Characters`, `Words` and `Subwords`, which have the same special ids."""

    padding_id, unit, max_length, has_segments = PADDING_ID, "tokens", None, False
    mask_token = MASK_TOKEN
    around = (), ()  # special tokens before and after a text

    @property
    def vocabulary_size(self):
        """int, the number of ids."""
        return len(self)

    @property
    def special_ids(self):
        """frozenset of ints, the ids of padding, unknown, begin, end and, if present, `[MASK]`."""
        mask = () if self.mask_token_id is None else (self.mask_token_id,)
        return frozenset({*range(len(SPECIAL)), *mask})

    def encode_plain(self, text):
        """Return the int32 ids (T,) of `text`, a str of any length."""
        return self.encode([text])[0]

    def encode_sources(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, with an end id."""
        return [np.append(row, np.int32(END_ID)) for row in self.encode(texts)]

    def encode_targets(self, texts):
        """Return a list with the ids (T,) of each of `texts`, without begin and end ids."""
        return self.encode(texts)

    def name_tokens(self, ids):
        """Return the entry of each id in `ids` (T,) in readable form, a list of str."""
        return self.pieces(ids)


@dataclasses.dataclass(frozen=True, repr=False)
class Subwords(OwnTokenizer):
    """A SentencePiece tokenizer (Kudo & Richardson, 2018) with the special ids of `Characters`.

    Id 0 is padding, 1 is anything unknown, 2 begins a text and 3 ends a text, as in
    `keras_hub.tokenizers.compute_sentence_piece_proto`. Each library can read the models of the
    other library.

    Args:
        proto: bytes, a model in SentencePiece's format.

    ```python
    import keras_attention as ka

    lines = ["the cat sat", "the cats sit", "a cat, the mat"] * 3
    subwords = ka.data.Subwords.build(lines, vocabulary_size=18)
    ids = subwords.encode(["the mat", "cats"])
    assert subwords.decode(ids) == ["the mat", "cats"] and len(subwords) == 18
    ```
    """

    proto: bytes

    def __post_init__(self):
        processor = self._processor
        ids = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
        if ids != [0, 1, 2, 3]:
            raise ValueError(
                f"The ids of padding, unknown, BEGIN and END are {ids} in this SentencePiece "
                "model, expected [0, 1, 2, 3]. Train it with ka.data.Subwords.build, or with "
                "pad_id=0, unk_id=1, bos_id=2, eos_id=3."
            )

    @classmethod
    def build(
        cls,
        texts,
        vocabulary_size,
        *,
        model_type="unigram",
        lowercase=False,
        byte_fallback=False,
        mask_token=False,
        shrink=False,
    ):
        """Train a tokenizer on `texts`, and return it.

        Every character in `texts` becomes a piece. Repeated spaces are collapsed, and compatibility
        forms of characters (ligatures, full-width letters) become ordinary ones, as in Unicode's
        NFKC. To share one vocabulary between source and target, pass text in both languages.

        Args:
            texts: iterable of str, only the training split.
            vocabulary_size: int, the number of ids, including the four special ones.
            model_type: `"unigram"` (Kudo, 2018), or `"bpe"` for byte-pair encoding (Sennrich et
                al., 2016).
            lowercase: bool, whether to ignore case. Decoded text is then lower-case.
            byte_fallback: bool, whether characters that do not occur in `texts` are encoded as
                their UTF-8 bytes instead of as unknown. This adds 256 pieces.
            mask_token: bool, whether to reserve id 4 for `[MASK]`, for masked language models.
            shrink: bool, whether to reduce `vocabulary_size` if `texts` have fewer pieces. If
                False, this raises a ValueError.
        """
        if model_type not in MODEL_TYPES:
            raise ValueError(f"model_type={model_type!r}: expected one of {MODEL_TYPES}.")
        caller = "Subwords.build"
        vocabulary_size = check_whole_number(caller, "vocabulary_size", vocabulary_size, 5)
        texts = check_texts(caller, texts)
        lines = [line for text in texts for line in text.split("\n") if line.strip()]
        if not lines:
            raise ValueError("Subwords.build: texts is empty: expected strings to learn from.")
        options = dict(
            model_type=model_type,
            byte_fallback=byte_fallback,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            user_defined_symbols=[MASK_TOKEN] if mask_token else [],
        )
        try:
            return cls(_train(lines, vocab_size=vocabulary_size, **options))
        except RuntimeError as error:
            most = _read_most(error)
            if not shrink or most is None:
                raise _size_error(vocabulary_size, error) from error
        return cls(_train(lines, vocab_size=most, **options))

    def extend(self, texts, vocabulary_size):
        """Return a tokenizer that keeps all ids and adds ids for new pieces found in `texts`.

        Use this method for text unlike the training data, which would be split into many short
        pieces. `spell` returns the old pieces that make up a new piece. `vocabulary_size` is the
        maximum number of pieces to learn from `texts`, which should be only the training split. If
        there is little text, a large number leads to pieces that occur only once. Raise a
        ValueError for a byte-pair model.
        """
        proto = self._parse()
        if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
            raise ValueError(
                'Subwords.extend needs a model of type "unigram": this one is of byte pairs.'
            )
        lowercase = proto.normalizer_spec.name.endswith("_cf")
        learnt = type(self).build(texts, vocabulary_size, lowercase=lowercase, shrink=True)
        existing = {piece.piece for piece in proto.pieces}
        proto.pieces.extend(p for p in learnt._parse().pieces if p.piece not in existing)
        proto.trainer_spec.vocab_size = len(proto.pieces)
        return type(self)(proto.SerializeToString())

    def spell(self, pieces):
        """Split each str in `pieces` into pieces of this tokenizer, and return lists of ids.

        The strings can be pieces of another tokenizer.
        """
        proto = self._parse()
        for option in ("add_dummy_prefix", "remove_extra_whitespaces"):
            setattr(proto.normalizer_spec, option, False)  # a piece may begin within a word
        plain = type(self)(proto.SerializeToString())
        rows = plain.encode([piece.replace(_SPACE, " ") for piece in pieces])
        return [row.tolist() for row in rows]

    def _parse(self):
        """Return the model as a protocol buffer of SentencePiece, a copy that may be modified."""
        messages = import_sentencepiece_messages("Subwords.extend")
        return messages.ModelProto.FromString(self.proto)

    def __len__(self):
        return self._processor.vocab_size()

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]`, or None if it has no id."""
        number = self._processor.piece_to_id(MASK_TOKEN)
        return None if number == UNKNOWN_ID else number

    def encode(self, texts):
        """Return a list with the int32 ids (T,) of each of `texts`, without begin and end ids.

        If `[MASK]` has an id, it is one token, together with the space before it.
        """
        texts = check_texts("Subwords.encode", texts)
        rows = [np.array(row, "int32") for row in self._processor.encode(texts)]
        if (mask := self.mask_token_id) is None:
            return rows
        space = self._processor.piece_to_id(_SPACE)
        return [row[(row != space) | (np.append(row[1:], 0) != mask)] for row in rows]

    def decode(self, rows):
        """Convert `rows`, a list of ids (T,), to a list of str.

        Each row is read up to its end id. Padding and begin ids are skipped. Unknown pieces become
        U+2047, a double question mark.
        """
        rows = [check_ids(cut_at_end(row), len(self)) for row in rows]
        return self._processor.decode(rows) if rows else []

    def pieces(self, ids):
        """Return the pieces of `ids` (T,), a list of str. `▁` is a space before a word."""
        ids = check_ids(np.asarray(ids).tolist(), len(self))
        return [self._processor.id_to_piece(i) for i in ids]

    def name_tokens(self, ids):
        """Return the pieces of `ids` (T,) in readable form, a list of str.

        As in BERT, a piece inside a word starts with `##`. A piece at the start of a word is shown
        without its space.
        """
        names = []
        for i, piece in zip(np.asarray(ids).tolist(), self.pieces(ids), strict=True):
            if i in self.special_ids:
                names.append(piece)
            elif piece.startswith(_SPACE):
                names.append(piece.removeprefix(_SPACE) or " ")
            else:
                names.append(f"##{piece}")
        return names

    def token_texts(self):
        """Return two lists with the text of each id, after other ids and as the first id.

        A special id has None in place of a text.
        """
        ids = range(len(self))
        pieces = [None if i in self.special_ids else self._processor.id_to_piece(i) for i in ids]
        return read_piece_texts(self._processor, pieces)

    @functools.cached_property
    def _processor(self):
        sentencepiece = import_sentencepiece("Subwords")
        try:
            if not self.proto:  # SentencePiece accepts empty bytes
                raise TypeError("no bytes")
            processor = sentencepiece.SentencePieceProcessor(model_proto=self.proto)
            for i in range(processor.vocab_size()):
                processor.id_to_piece(i)  # raises an error if the piece is not valid UTF-8
            return processor
        except (RuntimeError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{self.proto[:20]!r}...: expected the bytes of a SentencePiece model. Read a file "
                "with ka.data.Subwords.load(path)."
            ) from error

    def keras_hub_tokenizer(self, **options):
        """Return a `keras_hub.tokenizers.SentencePieceTokenizer`, a layer for use with `tf.data`.

        `options` are arguments of that class, such as `sequence_length`.
        """
        tokenizers = import_keras_hub("Subwords.keras_hub_tokenizer").tokenizers
        return tokenizers.SentencePieceTokenizer(proto=self.proto, **options)

    def save(self, path):
        """Save the tokenizer to the file `path` in SentencePiece's format."""
        write_whole(path, self.proto)

    @classmethod
    def load(cls, path):
        """Load a tokenizer from the file `path`, which `save` or SentencePiece wrote."""
        proto = read_bytes(path)
        with prefix_errors(path):
            return cls(proto)

    def __repr__(self):
        return f"Subwords({len(self)} entries)"


_SPACE = "▁"  # marks a space in SentencePiece's pieces


def read_piece_texts(processor, pieces):
    """Return two lists with the text of each piece, after other pieces and as the first piece.

    `processor` is the SentencePiece model, and `pieces` a list of str, or None for special tokens.
    The results are lists of str, bytes (of a part of a character) or None.
    """

    def read(piece):
        i = UNKNOWN_ID if piece is None else processor.piece_to_id(piece)
        if piece is None or processor.is_unknown(i) or processor.is_control(i):
            return None
        if processor.is_byte(i):
            return bytes([int(piece[3:5], 16)])  # <0xE2>
        return piece.replace(_SPACE, " ")

    rest = [read(piece) for piece in pieces]
    word = next((x for x in rest if isinstance(x, str) and x[0] == " " and x.strip()), None)
    if word is None or processor.decode([word.replace(" ", _SPACE)]).startswith(" "):
        return rest, rest
    # Some models drop all spaces in front, others drop one.
    drops_all = not processor.decode([_SPACE, word.replace(" ", _SPACE)]).startswith(" ")
    first = [x.removeprefix(" ") if isinstance(x, str) else x for x in rest]
    return rest, [x if x or drops_all else None for x in first]


def _train(lines, **options):
    """Train a SentencePiece model on `lines` and return it as bytes.

    `options` are passed to SentencePiece's trainer.
    """
    proto = io.BytesIO()
    import_sentencepiece("Subwords").SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=proto,
        character_coverage=1.0,
        max_sentence_length=1_000_000,  # SentencePiece silently skips longer lines
        pad_id=PADDING_ID,
        unk_id=UNKNOWN_ID,
        bos_id=BEGIN_ID,
        eos_id=END_ID,
        num_threads=4,  # fixed, because the pieces depend on it
        minloglevel=2,
        **options,
    )
    return proto.getvalue()


def _read_most(error):
    """Return the maximum vocabulary size, an int in SentencePiece's `error` message, or None."""
    match = re.search(r"value <= (\d+)", str(error))
    return match and int(match[1])


def _size_error(vocabulary_size, error):
    """Return a ValueError about a vocabulary size that SentencePiece refused with `error`.

    The message suggests a size, if `error` contains one.
    """
    most = _read_most(error)
    least = re.search(r"smaller than required_chars. (\d+) vs (\d+)", str(error))
    if most:
        mend = f"is too large for this text: choose {most} at most, or give more text"
    elif least:
        mend = f"is too small for the characters of this text: choose {least[2]} at least"
    else:
        mend = f"does not suit this text: {error}"
    return ValueError(f"Subwords.build: vocabulary_size={vocabulary_size} {mend}.")
