"""The base classes of positions: `Position`, and `Weighted` for those with weights."""

import keras

from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import LayerPart

ROLES = ("embed", "rotate", "bias")


class Position:
    """Encodes where a token is, in one or more of three roles.

    *embed* adds to the tokens before the first layer, *rotate* rotates queries and keys, *bias*
    adds to the scores. `roles` names the roles of a class, so that a builder passes each part to
    the layer that uses it (`for_role`). Other roles have no effect. Everything is computed in
    float32 and cast to the tokens' dtype at the end: bfloat16 cannot count past 256.

    Positions are int tensors (T,) or (B, T) that count from 0. None means 0, 1, 2, ... With a
    cache, a memory or packed documents they tell where the tokens are, and keys may have others
    than queries.

    A position without weights is a frozen dataclass under `Position` and `Part`. One with weights
    is a `Weighted`, which its owner builds with (B, T, D) for embed and (B, T, N, H) for the other
    roles.

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
        """Raise a ValueError if the position does not fit a sequence of `length` tokens.

        Layers call it if the caller gives no positions. Most positions fit any length.

        Args:
            length: int, or None if unknown until a graph runs.
            exact: bool, whether the sequence must be whole, not only its beginning.
        """

    def embed(self, x, positions=None):
        """Add positions to tokens `x` (B, T, D), in the dtype of `x`."""
        return x

    def rotate(self, x, positions=None):
        """Rotate queries or keys `x` (B, T, N, H) by their positions, in the dtype of `x`."""
        return x

    def rotate_key(self, x, positions=None):
        """Rotate keys `x` (B, S, K, H), by default as `rotate`."""
        return self.rotate(x, positions)

    def bias(self, query_positions, key_positions, query, key=None):
        """Compute the bias added to the scores.

        Args:
            query_positions: int (T,) or (B, T). None counts along the query.
            key_positions: int (S,) or (B, S). None counts along the key, or means self-attention if
                there is no key.
            query: (B, T, N, H), after `rotate`, for N and for biases that depend on content.
            key: (B, S, N or K, H), after `rotate`, for biases that depend on content.

        Returns:
            float32 (1 or B, N, T, S), or None.
        """
        return None

    def values(self, query_positions, key_positions, weights):
        """Compute the term added to the attention's output, if values have vectors.

        Args:
            query_positions, key_positions: as for `bias`.
            weights: (B, N, T, S), after dropout.

        Returns:
            float32 (B, T, N, Hv), or None.
        """
        return None


class Weighted(IntegerInputs, Position, LayerPart):
    """A position with weights, which stay float32 under every policy.

    A subclass is registered, adds its tables in `build`, and names the arguments of its constructor
    in `own_arguments`, for `get_config`. Unknown keys of a config are an error.

    Args:
        initializer: of the weights. None is the normal distribution with deviation 0.02 of BERT and
            ViT.

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

    def __init__(self, initializer=None, **kwargs):
        super().__init__(**kwargs)
        if initializer is None:
            initializer = keras.initializers.RandomNormal(stddev=0.02)
        self.initializer = keras.initializers.get(initializer)

    def add_table(self, shape, name="table", initializer=None):
        """Add a trainable float32 weight that mixed precision leaves unchanged."""
        initializer = self.initializer if initializer is None else initializer
        if isinstance(initializer, keras.initializers.Initializer):
            # a copy for each: an initializer object draws the same values every time
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

    def get_config(self):
        initializer = keras.initializers.serialize(self.initializer)
        return {**super().get_config(), "initializer": initializer}


class WeightedEmbedding(Weighted):
    """A position with weights that adds to tokens.

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
    """A position with weights that adds to the scores.

    Call arguments:
        query: (B, T, N, H). key: (B, S, K, H) or None.
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S).
    """

    roles = frozenset({"bias"})

    def call(self, query, key=None, query_positions=None, key_positions=None):
        return self.bias(query_positions, key_positions, query, key)
