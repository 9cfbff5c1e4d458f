"""What every score is."""

import inspect

import keras
from keras import ops

from keras_attention.part import check_keys

OF_ANY_LAYER = ("name", "trainable", "dtype")


class Score:
    """Says how well each query fits each key: `score(query, key)` -> scores (B, N, T, S).

    query (B, T, N, H) and key (B, S, N, H) have the same heads; the scores have their dtype, or the
    compute dtype of a score with weights.

    Attributes:
        fold: for a score that is a dot product after a change of query and key, the method
            `fold(query, key) -> (query', key', scale)` with `score = scale · query' · key'`, where
            `scale` is a Python float; None for the others. It takes keys with fewer heads too
            (B, S, K, H), K dividing N: each key is changed alone. Every kernel can compute a score
            that folds; the others need the dense one.
    """

    fold = None

    def prepare(self, key):
        """What keys (B, S, N, H) become before any query is known, (B, S, N, any width).

        For queries that come one at a time, as in a recurrent decoder: what depends on the keys
        alone is computed once, and `match` does the rest for each query.
        """
        return key

    def match(self, query, prepared):
        """Scores (B, N, 1, S) of one query (B, 1, N, H) and the keys that `prepare` has seen."""
        return self(query, prepared)


class WeightedScore(keras.layers.Layer, Score):
    """A score with weights, which are per head: their first axis is N."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def ensure_built(self, query, key):
        """Makes the weights when `fold` is used without calling the layer first."""
        if not self.built:
            self.build(tuple(query.shape), tuple(key.shape))

    def compute_output_shape(self, query_shape, key_shape):
        batch, queries, heads, _ = query_shape
        return (batch, heads, queries, key_shape[1])

    def compute_mask(self, inputs, previous_mask):
        return None  # the axes of scores are not those of the inputs

    @classmethod
    def from_config(cls, config):
        parameters = inspect.signature(cls.__init__).parameters
        own = [name for name in parameters if name not in ("self", "kwargs")]
        check_keys(cls, config, [*own, *OF_ANY_LAYER])
        return super().from_config(config)


class KernelScore(WeightedScore):
    """A score whose weights are matrices and vectors.

    Args:
        kernel_initializer: for all weights; None is the normal distribution that gives scores of
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


def head_shapes(part, query_shape, key_shape):
    """N, H and the key's H of (B, T, N, H) and (B, S, K, H); refuses other or unknown ones."""
    shapes = tuple(query_shape), tuple(key_shape)
    if any(len(shape) != 4 or None in shape[2:] for shape in shapes):
        raise ValueError(
            f"{type(part).__name__} scores queries and keys of shape (batch, length, heads, size), "
            f"heads and size known; received query {shapes[0]} and key {shapes[1]}. "
            "Split the heads first: reshape to (batch, length, heads, size)."
        )
    return shapes[0][2], shapes[0][3], shapes[1][3]


def check_one_width(part, query, key):
    """Refuses query and key of different widths, for scores that compare them by coordinate."""
    _, width, key_width = head_shapes(part, query.shape, key.shape)
    if width != key_width:
        raise ValueError(
            f"{type(part).__name__} compares query and key coordinate by coordinate, but the query "
            f"has size {width} and the key {key_width}. Project both to one size, or use Bilinear, "
            "Concat or Additive."
        )


def check_one_key_head_each(part, query, key):
    """Refuses grouped keys where the score itself is asked; kernels deal with those."""
    heads, key_heads = query.shape[2], key.shape[2]
    if heads != key_heads:
        raise ValueError(
            f"{type(part).__name__} scores query heads against as many key heads; received {heads} "
            f"and {key_heads}. Repeat the keys, or use attend(), which shares them."
        )


def product(part, query, key):
    """The scores (B, N, T, S) of a part that folds."""
    check_one_key_head_each(part, query, key)
    query, key, scale = part.fold(query, key)
    if scale != 1:
        query = query * scale  # (B, T, N, H), not (B, N, T, S): fewer numbers, and no overflow
    return ops.einsum("btnh,bsnh->bnts", query, key)
