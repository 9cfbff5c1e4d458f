"""Prompts and sources as users have them, made into rectangles of ids."""

import keras
import numpy as np


def rows(name, ids, padding_id=0):
    """A list of int32 arrays, one for each row, without the padding around it.

    Args:
        name: str, what messages call it.
        ids: ints (B, T), padded on either side; a list of lists of ints; or ints (T,), one row.
        padding_id: int, or None where every id is a token.
    """
    if not isinstance(ids, list | tuple) and not len(getattr(ids, "shape", ())):
        raise ValueError(
            f"{name}={ids!r}: expected token ids, whole numbers (B, T), or a list of lists of "
            "them. Texts are made ids by what made those of the training."
        )
    if hasattr(ids, "shape"):
        ids = keras.ops.convert_to_numpy(ids)
    if len(ids) and np.ndim(ids[0]) == 0:
        ids = [ids]
    return [_row(name, number, row, padding_id) for number, row in enumerate(ids)]


def _row(name, number, ids, padding_id):
    ids = np.asarray(keras.ops.convert_to_numpy(ids))
    if ids.size == 0:
        return np.zeros((0,), "int32")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: row {number} holds {ids.dtype} of shape {ids.shape}, but token ids are whole "
            "numbers (B, T), or a list of lists of them. Texts are made ids by what made those of "
            "the training."
        )
    if padding_id is not None:
        places = np.flatnonzero(ids != padding_id)
        ids = ids[places[0] : places[-1] + 1] if len(places) else ids[:0]
    return ids.astype("int32")


def check_rows(name, rows, vocabulary_size=None):
    """Refuses rows that hold nothing, or ids that are outside the vocabulary."""
    for number, row in enumerate(rows):
        if not len(row):
            raise ValueError(
                f"{name}: row {number} is empty, and a model needs a token to go on from. Give it "
                "one, or leave the row out"
                + ("; begin_id=... puts one in front of every row." if name == "prompt" else ".")
            )
        outside = row[(row < 0) | (row >= (vocabulary_size or np.inf))]
        if len(outside):
            raise ValueError(
                f"{name}: row {number} has the id {outside[0]}, which is outside the vocabulary of "
                f"{vocabulary_size} ids, 0 to {(vocabulary_size or 0) - 1}."
            )


def pad_left(rows, width, padding):
    """int32 (B, width), rows at the right end, and where each begins, int32 (B,)."""
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[width - len(row) :] = row
    return padded, np.array([width - len(row) for row in rows], "int32")


def pad_right(rows, width, padding):
    """int32 (B, width), rows at the left end."""
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def bucket(length):
    """A length that serves this one: itself; on JAX a power of two, to compile less often."""
    if keras.backend.backend() != "jax":
        return length
    return max(8, 1 << (length - 1).bit_length())


def is_ids(source):
    """Whether a source is token ids, and not an image, a spectrogram or several inputs."""
    if hasattr(source, "dtype"):
        return "int" in str(source.dtype) and len(source.shape) <= 2
    return isinstance(source, list | tuple)
