"""Masks: rules for which keys each query may attend to. Combine them with `&`, `|` and `~`."""

from keras_attention.core import part
from keras_attention.masks.attention_mask import (
    all_of,
    any_of,
    materialize,
    padding,
    positions_in_segments,
    prefix_lengths,
    same_segment,
    token_mask,
)
from keras_attention.masks.base import Both, Either, Full, Mask, NamedMask, Not
from keras_attention.masks.big_bird import BigBird
from keras_attention.masks.blocks import BlockSparse, Blockwise, Chunked
from keras_attention.masks.causal import Causal
from keras_attention.masks.global_tokens import Global
from keras_attention.masks.longformer import Longformer
from keras_attention.masks.prefix import Prefix
from keras_attention.masks.random_keys import Random
from keras_attention.masks.reach import Reach
from keras_attention.masks.strided import Strided
from keras_attention.masks.window import Dilated, Window, Window2D

NAMES = {
    "full": Full,
    "causal": Causal,
    "window": Window,
    "dilated": Dilated,
    "strided": Strided,
    "prefix": Prefix,
    "global": Global,
    "chunked": Chunked,
    "window_2d": Window2D,
    "blockwise": Blockwise,
    "block_sparse": BlockSparse,
    "random": Random,
    "longformer": Longformer,
    "big_bird": BigBird,
}


def get(identifier, dtype=None):
    """Return the mask that `identifier` describes.

    Args:
        identifier: a mask, a name in `NAMES`, or the config of a mask. None returns None.
        dtype: ignored for the masks of this package, which have no weights.

    Example: `ka.masks.get("causal") == ka.masks.Causal()`
    """
    return part.get(identifier, names=NAMES, family="mask", base=Mask, dtype=dtype)


__all__ = [
    "NAMES",
    "BigBird",
    "BlockSparse",
    "Blockwise",
    "Both",
    "Causal",
    "Chunked",
    "Dilated",
    "Either",
    "Full",
    "Global",
    "Longformer",
    "Mask",
    "NamedMask",
    "Not",
    "Prefix",
    "Random",
    "Reach",
    "Strided",
    "Window",
    "Window2D",
    "all_of",
    "any_of",
    "get",
    "materialize",
    "padding",
    "positions_in_segments",
    "prefix_lengths",
    "same_segment",
    "token_mask",
]
