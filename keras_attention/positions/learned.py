"""A vector for each position, learned."""

import keras
from keras import ops

from keras_attention import checks, scope
from keras_attention.positions.counting import count, known, where
from keras_attention.positions.interpolation import interpolate
from keras_attention.positions.weighted import Weighted


@keras.saving.register_keras_serializable(package="keras_attention")
class Learned(Weighted):
    """Adds a learned vector for each position (Gehring et al., 2017; BERT and ViT).

    There is no vector past `max_length`: a longer input is an error, as early as its length is
    known (in a graph or a LiteRT file of unknown length, when it runs), never a wrong answer.
    `extend` makes the table longer, `interpolate` moves that of an image to another size.

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
        scope.at_most(self.max_length, f"{type(self).__name__}(max_length={self.max_length})")
        positions = where(positions, x)
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

    def interpolate(self, grid, new_grid, prefix=0, method="bicubic"):
        """The same part for an image of another size, its table resized.

        Args:
            grid: (rows, columns) of the patches that the table is for; (1, n) for text.
            new_grid: (rows, columns) wanted.
            prefix: int, the vectors in front that stay: class token, registers.
            method: as in `interpolate`.

        Returns:
            A new, built `Learned`. To put it into a trained model, build the model anew for the
            new size and give its position the weights of this.
        """
        self.check_built()
        table = interpolate(self.table, grid, new_grid, prefix, method)
        other = self.from_config({**self.get_config(), "max_length": len(table)})
        other.build((None, None, table.shape[1]))
        other.table.assign(table)
        return other

    def _check_length(self, x):
        if x.shape[1] is not None and x.shape[1] > self.max_length:
            raise ValueError(
                f"A sequence of length {x.shape[1]} is longer than Learned(max_length="
                f"{self.max_length}). Shorten it, or make the table longer with extend()."
            )

    def _check_inside(self, positions):
        values = known(positions)
        if values is None or not values.size:
            return
        first, last = values.min(), values.max()
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
