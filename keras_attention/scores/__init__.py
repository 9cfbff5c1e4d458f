"""Scores: how well each query matches each key, (B, T, N, H), (B, S, N, H) -> (B, N, T, S)."""

from keras_attention.core import part
from keras_attention.scores.additive import Additive, Concat, sum_over_units
from keras_attention.scores.base import Score
from keras_attention.scores.bilinear import Bilinear
from keras_attention.scores.cosine import Cosine
from keras_attention.scores.dot import Dot, ScaledDot
from keras_attention.scores.squared_distance import SquaredDistance

NAMES = {
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "cosine": Cosine,
    "bilinear": Bilinear,
    "concat": Concat,
    "additive": Additive,
    "squared_distance": SquaredDistance,
}


def get(identifier, dtype=None):
    """Return the score that `identifier` describes.

    Args:
        identifier: a score, a name in `NAMES`, or the config of a score. None returns None.
        dtype: dtype policy for a score with weights, if it is created from a name.

    Example: `ka.scores.get("scaled_dot") == ka.scores.ScaledDot()`
    """
    return part.get(identifier, names=NAMES, family="score", base=Score, dtype=dtype)


__all__ = [
    "NAMES",
    "Additive",
    "Bilinear",
    "Concat",
    "Cosine",
    "Dot",
    "ScaledDot",
    "Score",
    "SquaredDistance",
    "get",
    "sum_over_units",
]
