"""`Subwords`: texts to ids and back with SentencePiece; and what all tokenizers have in common."""

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


def check_texts(owner, texts):
    """Return `texts` as a list; a single str, which is one of characters, is refused."""
    if isinstance(texts, str):
        raise ValueError(f"{owner}: {texts[:40]!r} is one text, expected a list of texts: [text].")
    return list(texts)


def cut_at_end(ids):
    """Return the ids (T,) before the first END, as a list of int without padding and BEGIN."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"Ids of shape {ids.shape} and dtype {ids.dtype}: expected a list of int for each text."
        )
    ends = np.flatnonzero(ids == END_ID)
    ids = ids[: ends[0]] if ends.size else ids
    return ids[(ids != PADDING_ID) & (ids != BEGIN_ID)].tolist()


def check_ids(ids, size):
    """Return `ids`, a list of int, if every one of them is below `size`."""
    if wrong := [i for i in ids if not 0 <= i < size]:
        raise ValueError(f"There is no id {wrong[0]}: the vocabulary has ids from 0 to {size - 1}.")
    return ids


SPECIAL = ("<pad>", "<unk>", "<begin>", "<end>")
MASK_TOKEN = "[MASK]"  # BERT's
MASK_ID = 4  # in tokenizers that are built with one


MODEL_TYPES = ("unigram", "bpe")


class OwnTokenizer:
    """What `Characters`, `Words` and `Subwords` share: the special ids."""

    padding_id, unit, max_length, has_segments = PADDING_ID, "tokens", None, False
    mask_token = MASK_TOKEN
    around = (), ()  # special tokens before and after a text

    @property
    def vocabulary_size(self):
        """int, how many ids there are."""
        return len(self)

    @property
    def special_ids(self):
        """frozenset of ints, the ids of padding, unknown, BEGIN, END and `[MASK]`."""
        mask = () if self.mask_token_id is None else (self.mask_token_id,)
        return frozenset({*range(len(SPECIAL)), *mask})

    def encode_plain(self, text):
        """int32 ids (T,) of a text of any length."""
        return self.encode([text])[0]

    def encode_sources(self, texts):
        """Return a list of int32 ids (T,) of texts that an encoder reads, with END."""
        return [np.append(row, np.int32(END_ID)) for row in self.encode(texts)]

    def encode_targets(self, texts):
        """Return a list of int32 ids (T,) of texts that a decoder writes, without BEGIN and END."""
        return self.encode(texts)

    def name_tokens(self, ids):
        """Return what `ids` (T,) stand for, to be read: a list of str."""
        return self.pieces(ids)


@dataclasses.dataclass(frozen=True, repr=False)
class Subwords(OwnTokenizer):
    """A SentencePiece model (Kudo & Richardson, 2018), whose ids are those of `Characters`.

    Id 0 is padding, 1 everything unknown, 2 BEGIN and 3 END. So are they in what
    `keras_hub.tokenizers.compute_sentence_piece_proto` makes; both can read each other's.

    Args:
        proto: bytes, the model as SentencePiece writes it.

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
        """Return the pieces learnt from `texts`: take the training part only.

        Texts of both languages give one vocabulary that source and target can share.

        Args:
            texts: iterable of str.
            vocabulary_size: int, the ids, the four special ones included.
            model_type: `"unigram"` (Kudo, 2018), or `"bpe"`, byte-pair encoding (Sennrich et al.,
                2016).
            lowercase: bool, whether case is ignored; what comes back is lower-cased then.
            byte_fallback: bool, whether characters that `texts` do not have become their bytes in
                UTF-8, for which there are 256 pieces, and are not unknown.
            mask_token: bool, whether the id 4 is that of `[MASK]`, for masked language models.
            shrink: bool, whether texts that have not so many pieces get as many as they have,
                which is an error otherwise.

        Every character of `texts` is a piece. Spaces are squeezed, and compatible forms of
        characters (ligatures, full-width letters) become the plain ones: Unicode's NFKC.
        """
        if model_type not in MODEL_TYPES:
            raise ValueError(f"model_type={model_type!r}: expected one of {MODEL_TYPES}.")
        vocabulary_size = check_whole_number(
            "Subwords.build", "vocabulary_size", vocabulary_size, 5
        )
        texts = check_texts("Subwords.build", texts)
        lines = [line for text in texts for line in text.split("\n") if line.strip()]
        if not lines:
            raise ValueError("Subwords.build: texts is empty: there is nothing to learn from.")
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
        """Return the same pieces under the same ids, and behind them those of `texts` that it
        lacks.

        For texts of another kind than those it was learnt from, whose words it has to spell in
        many short pieces: it learns pieces of them alone, and adds the new ones.

        Args:
            texts: iterable of str, of the training part.
            vocabulary_size: int, how many pieces to learn of `texts`, or fewer where these have not
                so many. In few texts a large number makes pieces of words that are there once.

        Returns:
            `Subwords`. `spell` of this one says what its new pieces were made of.

        Raises:
            ValueError: this is a model of byte pairs, which are joined in an order.
        """
        proto = self._parse()
        if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
            raise ValueError(
                'Subwords.extend adds to a model of type "unigram" alone: the pieces of this one '
                "are joined in the order in which they were learnt."
            )
        lowercase = proto.normalizer_spec.name.endswith("_cf")
        learnt = type(self).build(texts, vocabulary_size, lowercase=lowercase, shrink=True)
        existing = {piece.piece for piece in proto.pieces}
        proto.pieces.extend(p for p in learnt._parse().pieces if p.piece not in existing)
        proto.trainer_spec.vocab_size = len(proto.pieces)
        return type(self)(proto.SerializeToString())

    def spell(self, pieces):
        """Return the ids of known pieces that spell each of `pieces`, a list of str.

        A list of lists.
        """
        proto = self._parse()
        for option in ("add_dummy_prefix", "remove_extra_whitespaces"):
            setattr(proto.normalizer_spec, option, False)  # a piece may begin within a word
        plain = type(self)(proto.SerializeToString())
        rows = plain.encode([piece.replace(_SPACE, " ") for piece in pieces])
        return [row.tolist() for row in rows]

    def _parse(self):
        """Return the model as SentencePiece's message, a copy that may be changed."""
        messages = import_sentencepiece_messages("Subwords.extend")
        return messages.ModelProto.FromString(self.proto)

    def __len__(self):
        return self._processor.vocab_size()

    @property
    def mask_token_id(self):
        """int, the id of `[MASK]`, or None where there is none."""
        number = self._processor.piece_to_id(MASK_TOKEN)
        return None if number == UNKNOWN_ID else number

    def encode(self, texts):
        """Return a list of int32 ids (T,) for each of `texts`, a list of str; no BEGIN and no END.

        Where `[MASK]` has an id, it is one token, which stands for a piece with the space before
        it: that space is no token of its own.
        """
        texts = check_texts("Subwords.encode", texts)
        if (mask := self.mask_token_id) is None:
            return [np.array(row, "int32") for row in self._processor.encode(texts)]
        space = self._processor.piece_to_id(_SPACE)
        rows = [np.array(row, "int32") for row in self._processor.encode(texts)]
        return [row[(row != space) | (np.append(row[1:], 0) != mask)] for row in rows]

    def decode(self, rows):
        """Return the text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        Unknown pieces become U+2047, a double question mark.
        """
        rows = [check_ids(cut_at_end(row), len(self)) for row in rows]
        return self._processor.decode(rows) if rows else []

    def pieces(self, ids):
        """Return the pieces that `ids` (T,) stand for, as a list of str.

        `▁` is a space before a word.
        """
        ids = check_ids(np.asarray(ids).tolist(), len(self))
        return [self._processor.id_to_piece(i) for i in ids]

    def name_tokens(self, ids):
        """Return what `ids` (T,) stand for, to be read: a list of str.

        The space before a word is left out, and what goes on in a word begins with `##`, as BERT
        writes it.
        """
        return [
            piece
            if i in self.special_ids
            else (piece.removeprefix(_SPACE) or " ")
            if piece.startswith(_SPACE)
            else f"##{piece}"
            for i, piece in zip(np.asarray(ids).tolist(), self.pieces(ids), strict=True)
        ]

    @functools.cached_property
    def _processor(self):
        sentencepiece = import_sentencepiece("Subwords")
        try:
            if not self.proto:  # which SentencePiece takes for a model to be given later
                raise TypeError("no bytes")
            processor = sentencepiece.SentencePieceProcessor(model_proto=self.proto)
            for i in range(processor.vocab_size()):
                processor.id_to_piece(i)  # decodes it
            return processor
        except (RuntimeError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{self.proto[:20]!r}... is no SentencePiece model: expected its bytes. Read a "
                "file with ka.data.Subwords.load(path)."
            ) from error

    def keras_hub_tokenizer(self, **options):
        """Return the same as a `keras_hub.tokenizers.SentencePieceTokenizer`, a layer for
        `tf.data`.

        Args:
            options: of that class, such as `sequence_length`.
        """
        tokenizers = import_keras_hub("Subwords.keras_hub_tokenizer").tokenizers
        return tokenizers.SentencePieceTokenizer(proto=self.proto, **options)

    def save(self, path):
        """Writes the model as SentencePiece does: its libraries for phones read it, too."""
        write_whole(path, self.proto)

    @classmethod
    def load(cls, path):
        """Reads what `save`, or SentencePiece, wrote."""
        proto = read_bytes(path)
        with prefix_errors(path):
            return cls(proto)

    def __repr__(self):
        return f"Subwords({len(self)} entries)"


_SPACE = "▁"  # as SentencePiece writes it


def _train(lines, **options):
    """SentencePiece's model of `lines`, as bytes; `options` are its own."""
    proto = io.BytesIO()
    import_sentencepiece("Subwords").SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=proto,
        character_coverage=1.0,
        max_sentence_length=1_000_000,  # SentencePiece leaves out longer ones, and does not say so
        pad_id=PADDING_ID,
        unk_id=UNKNOWN_ID,
        bos_id=BEGIN_ID,
        eos_id=END_ID,
        num_threads=4,  # the pieces depend on it: not the machine's number
        minloglevel=2,
        **options,
    )
    return proto.getvalue()


def _read_most(error):
    """Return the most pieces that texts have, by SentencePiece's error.

    None if it speaks of no such.
    """
    match = re.search(r"value <= (\d+)", str(error))
    return match and int(match[1])


def _size_error(vocabulary_size, error):
    """SentencePiece's error in our words; it says the largest size there can be, if that is it."""
    most = _read_most(error)
    least = re.search(r"smaller than required_chars. (\d+) vs (\d+)", str(error))
    if most:
        mend = f"is too large for these texts: choose {most} at most, or give more text"
    elif least:
        mend = f"is too small for the characters of these texts: choose {least[2]} at least"
    else:
        mend = f"does not suit these texts: {error}"
    return ValueError(f"Subwords.build: vocabulary_size={vocabulary_size} {mend}.")
