"""The base classes of scores, and checks of their inputs and outputs."""

import keras
from keras import ops

from keras_attention.core.part import LayerPart


class Score:
    """Base class of scores: `score(query, key)` computes how well each query matches each key.

    A call maps query (B, T, N, H) and key (B, S, N, H) to a tensor (B, N, T, S). This tensor has
    the dtype of the inputs or, if the score has weights, the compute dtype of the score.

    Attributes:
        fold: a method `fold(query, key) -> (query', key', scale)` for scores that are a dot product
            of transformed queries and keys: `score = scale · query' · key'`, where `scale` is a
            Python float. Keys may have fewer heads, (B, S, K, H). For other scores `fold` is None,
            and some kernels cannot compute them.
    """

    fold = None

    def prepare(self, key):
        """Compute the steps of the score that depend only on the keys.

        A recurrent decoder calls this once, and then calls `match` for each query.

        Args:
            key: (B, S, N, H).

        Returns:
            (B, S, N, any width), by default the keys themselves.
        """
        return key

    def match(self, query, prepared):
        """Compute scores (B, N, 1, S) for one query per row, (B, 1, N, H).

        `prepared` is the result of `prepare`.
        """
        return self(query, prepared)


class WeightedScore(LayerPart, Score):
    """Base class of scores that have their own weights for each of N heads.

    The first axis of every weight has the size N.
    """

    def ensure_built(self, query, key):
        """Build the weights if needed, because `fold` may be called before the layer itself.

        `query` is (B, T, N, H) and `key` is (B, S, K, H).
        """
        if not self.built:
            self.build(tuple(query.shape), tuple(key.shape))

    def compute_output_shape(self, query_shape, key_shape):
        batch, queries, heads, _ = query_shape
        return (batch, heads, queries, key_shape[1])

    def compute_mask(self, inputs, previous_mask):
        return None  # an input's mask does not fit the axes of the scores


class KernelScore(WeightedScore):
    """Base class of scores with matrices and vectors as weights.

    Args:
        kernel_initializer: initializer of all weights. None uses a normal distribution for which
            queries and keys of variance 1 have scores of variance about 1, whatever their width.
    """

    own_arguments = ("kernel_initializer",)

    def __init__(self, kernel_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def add_per_head(self, name, shape, variance):
        # Keras's initializers would include the heads in the fan-in of a kernel (N, H, units).
        initializer = self.kernel_initializer
        if initializer is None:
            initializer = keras.initializers.RandomNormal(stddev=variance**0.5)
        return self.add_weight(name=name, shape=shape, initializer=initializer)


def check_head_shapes(part, query_shape, key_shape):
    """Return the sizes that the weights of the score `part` need: N, the query's H, the key's H.

    `query_shape` is (B, T, N, H) and `key_shape` is (B, S, K, H).

    Raises:
        ValueError: the shapes are not (B, T, N, H) and (B, S, K, H) with static heads and sizes.
    """
    shapes = tuple(query_shape), tuple(key_shape)
    if any(len(shape) != 4 or None in shape[2:] for shape in shapes):
        raise ValueError(
            f"{type(part).__name__} needs queries and keys of shape (batch, length, heads, size) "
            f"with known heads and size, but received query {shapes[0]} and key {shapes[1]}. Split "
            "the heads first: reshape to (batch, length, heads, size)."
        )
    return shapes[0][2], shapes[0][3], shapes[1][3]


def check_one_width(part, query, key):
    """Raise a ValueError if the heads of query and key have different sizes.

    `part` is the score that the message names, `query` is (B, T, N, H), and `key` is (B, S, K, H).
    """
    _, width, key_width = check_head_shapes(part, query.shape, key.shape)
    if width != key_width:
        raise ValueError(
            f"{type(part).__name__} compares query and key coordinate by coordinate, but the query "
            f"has size {width} and the key {key_width}. Project both to one size, or use Bilinear, "
            "Concat or Additive."
        )


def check_one_key_head_each(part, query, key):
    """Raise a ValueError if keys and queries have different numbers of heads.

    `part` is the score that the message names, `query` is (B, T, N, H), and `key` is (B, S, K, H).
    """
    heads, key_heads = query.shape[2], key.shape[2]
    if heads != key_heads:
        raise ValueError(
            f"{type(part).__name__} needs as many key heads as query heads, but received "
            f"{key_heads} and {heads}. Repeat the keys, or use attend(), which shares them."
        )


def score_pairs(score, query, key):
    """Return `score(query, key)`. Raise a ValueError if its shape is not (B, N, T, S)."""
    scores = score(query, key)
    check_axes(score, "scores", scores, (query.shape[0], *query.shape[2:0:-1], key.shape[1]))
    return scores


def check_axes(part, name, tensor, expected):
    """Raise a ValueError if a tensor that `part` returned does not have the `expected` shape.

    Unknown dimensions are not compared. `part` is a score, which users can write themselves. `name`
    is what the message calls the tensor.
    """
    shape = tuple(getattr(tensor, "shape", ()))
    if len(shape) != len(expected) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(shape, expected, strict=True)
    ):
        axes = {"scores": "heads, queries, keys", "key": "keys, heads, size"}
        raise ValueError(
            f"{type(part).__name__} returned {name} of shape {shape}. Return (batch, "
            f"{axes.get(name, 'queries, heads, size')}) = {expected}."
        )


def as_floats(*tensors):
    """Return a list of the tensors, with integer tensors cast to float."""
    dtype = keras.backend.result_type(*(x.dtype for x in tensors), float)
    return [x if keras.backend.is_float_dtype(x.dtype) else ops.cast(x, dtype) for x in tensors]


def compute_product(part, query, key):
    """Compute the scores (B, N, T, S) of `part`, a score that defines `fold`: a dot product.

    `query` is (B, T, N, H) and `key` is (B, S, N, H).
    """
    check_one_key_head_each(part, query, key)
    query, key = as_floats(query, key)
    query, key, scale = part.fold(query, key)
    if scale != 1:
        query = query * scale  # cheaper than scaling (B, N, T, S), and avoids overflow
    return ops.einsum("btnh,bsnh->bnts", query, key)


def fold_unscaled(score, query, key):
    """Return query, key and scale of `score.fold`, after checking the shapes of the first two."""
    (*queries, _), (*keys, _) = query.shape, key.shape
    query, key, scale = score.fold(query, key)
    check_axes(score, "query", query, (*queries, None))
    check_axes(score, "key", key, (*keys, query.shape[-1]))
    return query, key, scale
