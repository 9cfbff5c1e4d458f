"""Texts to ids of pieces of words, learnt from text with SentencePiece, and back."""

import dataclasses
import functools
import io
import pathlib
import re

import numpy as np

from keras_attention.checks import whole_number
from keras_attention.data.extras import import_keras_hub, import_sentencepiece
from keras_attention.data.files import write_whole
from keras_attention.data.special_ids import (
    BEGIN_ID,
    END_ID,
    PADDING_ID,
    UNKNOWN_ID,
    checked_range,
    checked_texts,
    up_to_end,
)

MODEL_TYPES = ("unigram", "bpe")


@dataclasses.dataclass(frozen=True, repr=False)
class Subwords:
    """A SentencePiece model (Kudo & Richardson, 2018), whose ids are those of `Characters`.

    Id 0 is padding, 1 everything unknown, 2 BEGIN and 3 END. So are they in what
    `keras_hub.tokenizers.compute_sentence_piece_proto` makes; both can read each other's.

    Args:
        proto: bytes, the model as SentencePiece writes it.

    Example:

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
        found = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
        if found != [0, 1, 2, 3]:
            raise ValueError(
                f"The ids of padding, unknown, BEGIN and END are {found} in this SentencePiece "
                "model, expected [0, 1, 2, 3]. Train it with ka.data.Subwords.build, or with "
                "pad_id=0, unk_id=1, bos_id=2, eos_id=3."
            )

    @classmethod
    def build(
        cls, texts, vocabulary_size, *, model_type="unigram", lowercase=False, byte_fallback=False
    ):
        """The pieces learnt from `texts`: take the training part only.

        Texts of both languages give one vocabulary that source and target can share.

        Args:
            texts: iterable of str.
            vocabulary_size: int, the ids, the four special ones included.
            model_type: `"unigram"` (Kudo, 2018), or `"bpe"`, byte-pair encoding (Sennrich et al.,
                2016).
            lowercase: bool, whether case is ignored; what comes back is lower-cased then.
            byte_fallback: bool, whether characters that `texts` do not have become their bytes in
                UTF-8, for which there are 256 pieces, and are not unknown.

        Every character of `texts` is a piece. Spaces are squeezed, and compatible forms of
        characters (ligatures, full-width letters) become the plain ones: Unicode's NFKC.
        """
        if model_type not in MODEL_TYPES:
            raise ValueError(f"model_type={model_type!r}: expected one of {MODEL_TYPES}.")
        vocabulary_size = whole_number("Subwords.build", "vocabulary_size", vocabulary_size, 5)
        texts = checked_texts("Subwords.build", texts)
        lines = [line for text in texts for line in text.split("\n") if line.strip()]
        if not lines:
            raise ValueError("Subwords.build: texts is empty: there is nothing to learn from.")
        rule = "nmt_nfkc_cf" if lowercase else "nmt_nfkc"
        try:
            return cls(
                _train(
                    lines,
                    vocab_size=vocabulary_size,
                    model_type=model_type,
                    byte_fallback=byte_fallback,
                    normalization_rule_name=rule,
                )
            )
        except RuntimeError as error:
            raise _size_error(vocabulary_size, error) from error

    def __len__(self):
        return self._processor.vocab_size()

    def encode(self, texts):
        """A list of int32 ids (T,) for each of `texts`, a list of str; no BEGIN and no END."""
        rows = self._processor.encode(checked_texts("Subwords.encode", texts))
        return [np.array(row, "int32") for row in rows]

    def decode(self, rows):
        """The text of each of `rows`, ids (T,): up to END, without padding and BEGIN.

        What is unknown becomes U+2047, a double question mark.
        """
        rows = [checked_range(up_to_end(row), len(self)) for row in rows]
        return self._processor.decode(rows) if rows else []

    def pieces(self, ids):
        """The pieces that `ids` (T,) stand for, as a list of str; `▁` is a space before a word."""
        ids = checked_range(np.asarray(ids).tolist(), len(self))
        return [self._processor.id_to_piece(i) for i in ids]

    @functools.cached_property
    def _processor(self):
        sentencepiece = import_sentencepiece("Subwords")
        try:
            return sentencepiece.SentencePieceProcessor(model_proto=self.proto)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"{self.proto[:20]!r}... is no SentencePiece model: expected its bytes. Read a "
                "file with ka.data.Subwords.load(path)."
            ) from error

    def keras_hub_tokenizer(self, **options):
        """The same as a `keras_hub.tokenizers.SentencePieceTokenizer`, a layer for `tf.data`.

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
        try:
            return cls(pathlib.Path(path).read_bytes())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"There is no file {path}.") from error

    def __repr__(self):
        return f"Subwords({len(self)} entries)"


def _train(lines, **options):
    """SentencePiece's model of `lines`, as bytes; `options` are its own."""
    proto = io.BytesIO()
    import_sentencepiece("Subwords").SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=proto,
        character_coverage=1.0,
        max_sentence_length=1_000_000,  # longer ones are left out without a word
        pad_id=PADDING_ID,
        unk_id=UNKNOWN_ID,
        bos_id=BEGIN_ID,
        eos_id=END_ID,
        num_threads=4,  # the pieces depend on it: not the machine's number
        minloglevel=2,
        **options,
    )
    return proto.getvalue()


def _size_error(vocabulary_size, error):
    """SentencePiece's error in our words; it says the largest size there can be, if that is it."""
    most = re.search(r"value <= (\d+)", str(error))
    least = re.search(r"smaller than required_chars. (\d+) vs (\d+)", str(error))
    if most:
        mend = f"is too large for these texts: choose {most[1]} at most, or give more text"
    elif least:
        mend = f"is too small for the characters of these texts: choose {least[2]} at least"
    else:
        mend = f"does not suit these texts: {error}"
    return ValueError(f"Subwords.build: vocabulary_size={vocabulary_size} {mend}.")
