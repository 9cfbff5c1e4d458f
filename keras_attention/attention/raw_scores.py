"""Scores that are handed on from layer to layer."""

from keras import ops

from keras_attention.scores.base import Score, score_pairs


class RawScores(Score):
    """A score plus the scores of the layer below; keeps their sum as `raw`."""

    def __init__(self, score, previous):
        self.score, self.previous, self.raw = score, previous, None

    def __call__(self, query, key):
        self.raw = score_pairs(self.score, query, key)
        if self.previous is not None:
            self.raw = ops.add(self.raw, ops.cast(self.previous, self.raw.dtype))
        return self.raw


def check_previous(scores, shape):
    """Refuses scores that cannot be those of a layer with scores of this shape."""
    if scores is None:
        return
    same = len(scores.shape) == len(shape) and all(
        given is None or expected is None or given == expected
        for given, expected in zip(scores.shape, shape, strict=True)
    )
    if not same:
        raise ValueError(
            f"previous_scores has shape {tuple(scores.shape)}, this layer's scores {tuple(shape)}. "
            "Hand on the raw scores of a layer with the same number of heads, on the same queries "
            "and values."
        )
