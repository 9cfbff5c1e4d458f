"""A vector for each position, learned."""

import keras
from keras import ops

from keras_attention import checks
from keras_attention.positions.counting import count
from keras_attention.positions.weighted import Weighted


@keras.saving.register_keras_serializable(package="keras_attention")
class Learned(Weighted):
    """Adds a learned vector for each position (Gehring et al., 2017; BERT and ViT).

    There is no vector past `max_length`: a longer input is an error, as early as its length is
    known (in a graph or a LiteRT file of unknown length, when it runs), never a wrong answer.
    `extend` makes the table longer.

    Args:
        max_length: int, the number of positions.
        initializer: of the table (max_length, D); None is a normal distribution with deviation
            0.02.

    Call arguments:
        x: (B, T, D), T at most max_length.
        positions: int (T,) or (B, T), each from 0 to max_length - 1. Default: 0, 1, 2, ... Others
            are an error; where they are known only at run time, TensorFlow's CPU and LiteRT raise
            it, while a GPU and JAX do not check.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Learned(max_length=4)
    x = np.zeros((1, 3, 8), "float32")
    first = position(x)
    assert np.array_equal(first[0], position.get_weights()[0][:3])

    longer = position.extend(6)  # the same vectors, and two new ones
    assert np.array_equal(longer(x), first)
    ```
    """

    roles = frozenset({"embed"})

    def __init__(self, max_length, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.max_length = max_length
        checks.whole(self, "max_length")

    def build(self, shape):
        if len(shape) != 3 or shape[2] is None:
            raise ValueError(
                "Learned adds to tokens of shape (batch, length, width), the width known; "
                f"received {tuple(shape)}."
            )
        self.table = self.add_table((self.max_length, shape[2]))

    def call(self, x, positions=None):
        return self.embed(x, positions)

    def embed(self, x, positions=None):
        self.check_built()
        if positions is None:
            self._check_length(x)
            table = ops.convert_to_tensor(self.table)
            rows = ops.slice(table, (0, 0), (ops.shape(x)[1], x.shape[2]))
        else:
            self._check_inside(positions)
            rows = ops.take(self.table, count(positions, x), axis=0)
        if len(rows.shape) == 2:
            rows = ops.expand_dims(rows, axis=0)
        return ops.cast(ops.cast(x, "float32") + rows, x.dtype)

    def extend(self, new_length, initializer=None):
        """The same part with room for `new_length` positions.

        Args:
            new_length: int, at least `max_length`.
            initializer: for the new rows; this part's own by default.

        Returns:
            A new `Learned`, built if this one is. To put it into a trained model, build the model
            anew with `Learned(new_length)` and give its position the weights of this.
        """
        new_length = checks.whole_number("extend", "new_length", new_length, self.max_length)
        config = {**self.get_config(), "max_length": new_length}
        if initializer is not None:
            initializer = keras.initializers.get(initializer)
            config["initializer"] = keras.initializers.serialize(initializer)
        longer = self.from_config(config)
        if self.built:
            longer.build((None, None, self.table.shape[1]))
            old, new = ops.convert_to_tensor(self.table), ops.convert_to_tensor(longer.table)
            longer.table.assign(ops.concatenate([old, new[self.max_length :]], axis=0))
        return longer

    def _check_length(self, x):
        if x.shape[1] is not None and x.shape[1] > self.max_length:
            raise ValueError(
                f"A sequence of length {x.shape[1]} is longer than Learned(max_length="
                f"{self.max_length}). Shorten it, or make the table longer with extend()."
            )

    def _check_inside(self, positions):
        known = _values(positions)
        if known is None or not known.size:
            return
        first, last = known.min(), known.max()
        if first < 0 or last >= self.max_length:
            raise ValueError(
                f"Positions {first} to {last} go past Learned(max_length={self.max_length}), which "
                f"has 0 to {self.max_length - 1}. Make the table longer with extend()."
            )

    def compute_output_spec(self, x, positions=None):
        if positions is None:
            self._check_length(x)
        return keras.KerasTensor(x.shape, dtype=x.dtype)

    def get_config(self):
        return {**super().get_config(), "max_length": self.max_length}


def _values(positions):
    """`positions` as NumPy, or None while they are symbolic: then only the runtime can check."""
    try:
        return ops.convert_to_numpy(positions)
    except Exception:  # each backend says "symbolic" with a class of its own
        return None
