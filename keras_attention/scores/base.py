"""The base classes of scores, and the checks that they share."""

import keras
from keras import ops

from keras_attention.core.part import LayerPart


class Score:
    """Scores how well each query fits each key: `score(query, key)` -> scores (B, N, T, S).

    query (B, T, N, H) and key (B, S, N, H) have the same heads; the scores have their dtype, or the
    compute dtype of a score with weights.

    Attributes:
        fold: for a score that is a dot product after a change of query and key, the method
            `fold(query, key) -> (query', key', scale)` with `score = scale · query' · key'`, where
            `scale` is a Python float; None for other scores. Keys may have fewer heads
            (B, S, K, H), K dividing N. Every kernel computes a score with `fold`; the others need
            the dense kernel.
    """

    fold = None

    def prepare(self, key):
        """Return the part of the score that depends only on keys (B, S, N, H): (B, S, N, any).

        For queries that come one at a time, as in a recurrent decoder: it is computed once, and
        `match` computes the rest for each query.
        """
        return key

    def match(self, query, prepared):
        """Return scores (B, N, 1, S) of one query (B, 1, N, H) and the output of `prepare`."""
        return self(query, prepared)


class WeightedScore(LayerPart, Score):
    """A score with weights, which are per head: their first axis is N."""

    def ensure_built(self, query, key):
        """Builds the layer where `fold` is used without calling it first."""
        if not self.built:
            self.build(tuple(query.shape), tuple(key.shape))

    def compute_output_shape(self, query_shape, key_shape):
        batch, queries, heads, _ = query_shape
        return (batch, heads, queries, key_shape[1])

    def compute_mask(self, inputs, previous_mask):
        return None  # the axes of scores are not those of the inputs


class KernelScore(WeightedScore):
    """A score whose weights are matrices and vectors.

    Args:
        kernel_initializer: for all weights. None is the normal distribution that gives scores of
            variance about 1 to queries and keys of variance 1, at every width.
    """

    def __init__(self, kernel_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def add_per_head(self, name, shape, variance):
        # Keras would count the heads as part of the fan of a (N, H, U) kernel.
        initializer = self.kernel_initializer
        if initializer is None:
            initializer = keras.initializers.RandomNormal(stddev=variance**0.5)
        return self.add_weight(name=name, shape=shape, initializer=initializer)

    def get_config(self):
        initializer = keras.saving.serialize_keras_object(self.kernel_initializer)
        return {**super().get_config(), "kernel_initializer": initializer}


def check_head_shapes(part, query_shape, key_shape):
    """N, H and the key's H of (B, T, N, H) and (B, S, K, H); refuses other or unknown shapes."""
    shapes = tuple(query_shape), tuple(key_shape)
    if any(len(shape) != 4 or None in shape[2:] for shape in shapes):
        raise ValueError(
            f"{type(part).__name__} scores queries and keys of shape (batch, length, heads, size), "
            f"heads and size known; received query {shapes[0]} and key {shapes[1]}. "
            "Split the heads first: reshape to (batch, length, heads, size)."
        )
    return shapes[0][2], shapes[0][3], shapes[1][3]


def check_one_width(part, query, key):
    """Refuses query and key of different sizes, for scores that compare coordinates."""
    _, width, key_width = check_head_shapes(part, query.shape, key.shape)
    if width != key_width:
        raise ValueError(
            f"{type(part).__name__} compares query and key coordinate by coordinate, but the query "
            f"has size {width} and the key {key_width}. Project both to one size, or use Bilinear, "
            "Concat or Additive."
        )


def check_one_key_head_each(part, query, key):
    """Refuses grouped keys, which only kernels handle."""
    heads, key_heads = query.shape[2], key.shape[2]
    if heads != key_heads:
        raise ValueError(
            f"{type(part).__name__} scores query heads against as many key heads; received {heads} "
            f"and {key_heads}. Repeat the keys, or use attend(), which shares them."
        )


def score_pairs(score, query, key):
    """Return `score(query, key)`, whose axes must be (B, N, T, S) where sizes are known."""
    scores = score(query, key)
    check_axes(score, "scores", scores, (query.shape[0], *query.shape[2:0:-1], key.shape[1]))
    return scores


def check_axes(part, what, tensor, expected):
    """Refuses a tensor from a part, maybe a user's own, without the `expected` axes."""
    given = getattr(tensor, "shape", ())
    known = zip(given, expected, strict=False)
    if len(given) != len(expected) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in known
    ):
        axes = {"scores": "heads, queries, keys", "key": "keys, heads, size"}
        raise ValueError(
            f"{type(part).__name__} gave {what} of shape {tuple(given)}, where (batch, "
            f"{axes.get(what, 'queries, heads, size')}) = {expected} is expected."
        )


def as_floats(*tensors):
    """Return `tensors`, with integers cast to floats, as scores and weights are floats."""
    dtype = keras.backend.result_type(*(x.dtype for x in tensors), float)
    return [x if keras.backend.is_float_dtype(x.dtype) else ops.cast(x, dtype) for x in tensors]


def compute_product(part, query, key):
    """Return the scores (B, N, T, S) of a part with `fold`."""
    check_one_key_head_each(part, query, key)
    query, key = as_floats(query, key)
    query, key, scale = part.fold(query, key)
    if scale != 1:
        query = query * scale  # (B, T, N, H), not (B, N, T, S): fewer numbers, and no overflow
    return ops.einsum("btnh,bsnh->bnts", query, key)
