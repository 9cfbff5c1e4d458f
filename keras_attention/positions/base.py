"""Base classes of position encodings: `Position`, and `Weighted` for encodings with weights."""

import keras

from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import LayerPart

ROLES = ("embed", "rotate", "bias")


class Position:
    """Base class of position encodings, which have one or more of three roles.

    The role *embed* adds to the tokens before the first layer, *rotate* rotates queries and keys,
    and *bias* adds to the scores. The class attribute `roles` lists the roles of an encoding, so
    that a model can pass it to the layers that need it. The methods of all other roles do nothing.
    Everything is computed in float32 and cast to the tokens' dtype at the end, because bfloat16
    cannot represent all integers above 256.

    The arguments called positions are int tensors (T,) or (B, T) that count from 0. None means
    0, 1, 2, ... or, while a model decodes with a cache, the positions of the new tokens. Pass
    positions for packed documents, or if the tokens follow a memory. Keys may have different
    positions from queries.

    To write an encoding without weights, subclass `Position` and `Part` as a frozen dataclass. To
    write an encoding with weights, subclass `Weighted`. The layer that uses the encoding calls its
    `build` with the shape (B, T, D) for *embed* and (B, T, N, H) for the other roles.

    ```python
    import dataclasses
    import keras
    import numpy as np
    from keras import ops
    import keras_attention as ka


    @keras.saving.register_keras_serializable(package="my_project")
    @dataclasses.dataclass(frozen=True)
    class Recent(ka.positions.Position, ka.Part):
        "Subtracts the distance from every score: one slope for all heads."

        roles = frozenset({"bias"})

        def bias(self, query_positions, key_positions, query, key=None):
            far = ka.positions.distances(query_positions, key_positions)  # (1 or B, 1, T, S)
            return ops.tile(-ops.abs(ops.cast(far, "float32")), (1, query.shape[2], 1, 1))


    bias = Recent().bias(np.arange(3), np.arange(3), np.zeros((1, 3, 2, 4)))
    assert np.array_equal(bias[0, 1], [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]])
    ```
    """

    roles = frozenset()

    def check_length(self, length, exact=True):
        """Raise a ValueError if the encoding does not fit a sequence of `length` tokens.

        Layers call this method if the caller passes no positions. Most encodings fit any length.

        Args:
            length: int, or None if it is unknown until a graph runs.
            exact: bool, whether the sequence must be complete. If False, it may be shorter, such as
                the beginning of an image.
        """

    def embed(self, x, positions=None):
        """Add the encoding of `positions` to tokens `x` (B, T, D), in the dtype of `x`."""
        return x

    def rotate(self, x, positions=None):
        """Rotate queries or keys `x` (B, T, N, H) by `positions`, in the dtype of `x`."""
        return x

    def rotate_key(self, x, positions=None):
        """Rotate keys `x` (B, S, K, H) by `positions`. The default calls `rotate`."""
        return self.rotate(x, positions)

    def bias(self, query_positions, key_positions, query, key=None):
        """Compute the bias added to the scores: float32 (1 or B, N, T, S), or None.

        Args:
            query_positions: int (T,) or (B, T). None means 0 to T - 1.
            key_positions: int (S,) or (B, S). None means 0 to S - 1. If `key` is None too, keys
                have the positions of the queries.
            query: (B, T, N, H), after `rotate`. It determines N, and biases may depend on it.
            key: (B, S, N or K, H), after `rotate`, for biases that depend on the keys, or None.
        """
        return None

    def values(self, query_positions, key_positions, weights):
        """Compute the term added to the attention's output: float32 (B, T, N, Hv), or None.

        Args:
            query_positions: int (T,) or (B, T). None means 0 to T - 1.
            key_positions: int (S,) or (B, S). None means 0 to S - 1.
            weights: (B, N, T, S), the attention weights after dropout. Hv is the size of a value
                head.
        """
        return None


class Weighted(IntegerInputs, Position, LayerPart):
    """Base class of position encodings with weights, which stay float32 under every dtype policy.

    A subclass creates its weights in `build` by `add_table`. It lists its constructor arguments in
    `own_arguments`, so that `get_config` includes them. Register the subclass, so that it can be
    loaded. `from_config` raises an error for unknown keys.

    Args:
        initializer: initializer of the weights. None uses a normal distribution with standard
            deviation 0.02, as in BERT and ViT.

    ```python
    import numpy as np
    import keras_attention as ka


    class Everywhere(ka.positions.Weighted):
        "Adds one learned vector, the same at every position."

        roles = frozenset({"embed"})

        def build(self, shape):
            self.table = self.add_table((shape[2],))

        def embed(self, x, positions=None):
            self.check_built()
            return x + self.table


    everywhere = Everywhere("ones")
    everywhere.build((None, None, 3))
    assert np.array_equal(everywhere.embed(np.zeros((1, 2, 3), "float32")), np.ones((1, 2, 3)))
    ```
    """

    own_arguments = ("initializer",)

    def __init__(self, initializer=None, **kwargs):
        super().__init__(**kwargs)
        if initializer is None:
            initializer = keras.initializers.RandomNormal(stddev=0.02)
        self.initializer = keras.initializers.get(initializer)

    def add_table(self, shape, name="table", initializer=None):
        """Add a trainable float32 weight that mixed precision does not cast.

        Args:
            shape: tuple of ints.
            name: str, the name of the weight.
            initializer: initializer of the weight. None uses the initializer of the constructor.
        """
        initializer = self.initializer if initializer is None else initializer
        if isinstance(initializer, keras.initializers.Initializer):
            # a copy, because one initializer object returns the same values every time
            initializer = initializer.__class__.from_config(initializer.get_config())
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, dtype="float32", autocast=False
        )

    def check_built(self):
        """Raise a ValueError if `build` has not been called."""
        if not self.built:
            raise ValueError(
                f"{type(self).__name__} has no weights yet: the layer that owns it must call its "
                "build() first."
            )


class WeightedEmbedding(Weighted):
    """Base class of position encodings with weights that add to tokens.

    Call arguments:
        x: (B, T, D).
        positions: int (T,) or (B, T), or None for 0, 1, 2, ...
    """

    roles = frozenset({"embed"})

    def call(self, x, positions=None):
        return self.embed(x, positions)

    def compute_output_spec(self, x, positions=None):
        if positions is None:
            self.check_length(x.shape[1], exact=False)
        return keras.KerasTensor(x.shape, dtype=x.dtype)


class WeightedBias(Weighted):
    """Base class of position encodings with weights that add to the scores.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, K, H), or None.
        query_positions: int (T,) or (B, T), or None for 0, 1, 2, ...
        key_positions: int (S,) or (B, S), or None for 0, 1, 2, ...
    """

    roles = frozenset({"bias"})

    def call(self, query, key=None, query_positions=None, key_positions=None):
        return self.bias(query_positions, key_positions, query, key)
