"""The four ids that mean the same in every tokenizer, and what goes in and out around them."""

import numpy as np

PADDING_ID, UNKNOWN_ID, BEGIN_ID, END_ID = range(4)


def checked_texts(owner, texts):
    """`texts` as a list; a single str, which is one of characters, is refused."""
    if isinstance(texts, str):
        raise ValueError(f"{owner}: {texts[:40]!r} is one text, expected a list of texts: [text].")
    return list(texts)


def up_to_end(ids):
    """The ids (T,) before the first END, as a list of int without padding and BEGIN."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"Ids of shape {ids.shape} and dtype {ids.dtype}: expected a list of int for each text."
        )
    ends = np.flatnonzero(ids == END_ID)
    ids = ids[: ends[0]] if ends.size else ids
    return ids[(ids != PADDING_ID) & (ids != BEGIN_ID)].tolist()


def checked_range(ids, size):
    """`ids`, a list of int, if every one of them is below `size`."""
    if wrong := [i for i in ids if not 0 <= i < size]:
        raise ValueError(f"There is no id {wrong[0]}: the vocabulary has ids from 0 to {size - 1}.")
    return ids
