"""Transformer-XL's relative positions: sinusoids of the distance, projected for each head."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.positions.base import WeightedBias
from keras_attention.positions.indices import (
    check_max_wavelength,
    compute_angles,
    count_queries_and_keys,
    expand_positions,
)
from keras_attention.positions.relative_scores import (
    check_heads,
    check_key,
    get_scale,
    multiply_rows_per_head,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerXL(WeightedBias):
    """Adds Transformer-XL's distance terms and content bias to the scores (Dai et al., 2019).

    Pass it as `position=` of an attention layer, which passes it its query and key heads.

    `score = (q · k + (q + v) · W r(i - j) + u · k) / √H`. Here q · k is term (a) of section 3.3,
    and this class adds the terms (b), (c) and (d). r(i - j) contains the sines and then the cosines
    of the distance, for D/2 wavelengths. The matrix W projects it for each head, and u and v are
    learned vectors.

    r(i - j) is never computed. By the angle addition formulas, it is enough to rotate (q + v) W by
    i and to multiply the result by the sinusoids of j. This is exact for any positions, including
    the positions of memories and chunks, and needs no relative shift. Each pair of a query and a
    key costs N · D multiplications, where the score costs N · H, so a smaller `hidden_dim` is
    cheaper.

    Args:
        hidden_dim: even int, D, the width of r. None means N · H, as in the paper.
        max_wavelength: positive number. The longest wavelength is almost 2π · max_wavelength.
        scale: float, the factor of all terms. None means 1/√H, as in the score `scaled_dot`.
        initializer: initializer of W (D, N, H), u and v (N, H). None uses a normal distribution
            with standard deviation 0.02.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, K, H).
        query_positions: int (T,) or (B, T).
        key_positions: int (S,) or (B, S). If the first M keys are a memory, either give these keys
            the positions -M to -1, or let the positions of the queries start at M.

    ```python
    import numpy as np
    import keras_attention as ka

    x, memory = np.random.rand(2, 5, 24), np.random.rand(2, 3, 24)
    layer = ka.attention.MultiHeadAttention(4, 6, position="transformer_xl", mask="causal")
    seen = np.concatenate([memory, x], axis=1)
    output = layer(x, seen, query_positions=np.arange(3, 8))
    assert output.shape == (2, 5, 24)
    ```
    """

    weight_axes = {
        "kernel": ("embed", "heads", "head_dim"),
        "content_bias": ("heads", "head_dim"),
        "position_bias": ("heads", "head_dim"),
    }

    own_arguments = ("hidden_dim", "max_wavelength", "scale")

    def __init__(
        self, hidden_dim=None, max_wavelength=10000, scale=None, initializer=None, **kwargs
    ):
        super().__init__(initializer, **kwargs)
        self.hidden_dim, self.max_wavelength, self.scale = hidden_dim, max_wavelength, scale
        checks.check_whole_numbers(self, "hidden_dim", least=2, optional=True)
        check_max_wavelength(self)
        checks.check_number(self, "scale", optional=True)

    def build(self, shape):
        check_heads(self, shape)
        heads, size = shape[2:]
        width = self.hidden_dim or heads * size
        if width % 2:
            raise ValueError(
                f"TransformerXL(hidden_dim={self.hidden_dim}) has a sine and a cosine of each "
                f"wavelength, but {heads} heads of size {size} have {width} waves. Choose an even "
                "hidden_dim."
            )
        self.kernel = self.add_table((width, heads, size), "kernel")
        self.content_bias = self.add_table((heads, size), "content_bias")
        self.position_bias = self.add_table((heads, size), "position_bias")

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        check_key(self, key)
        i, j = count_queries_and_keys(query_positions, key_positions, query, key)
        by_distance = self._position_terms(i, j, ops.cast(query, "float32"))
        return (by_distance + self._content_term(ops.cast(key, "float32"))) * get_scale(self, query)

    def _position_terms(self, i, j, query):
        """Compute (q + v) · W r(i - j) for positions i, j and queries q: float32 (B, N, T, S)."""
        i, j = expand_positions(i), expand_positions(j)  # (1 or B, T), (1 or B, S)
        origin = i[:, :1]
        if not i.shape[1]:  # without queries, keys count from 0
            origin = ops.sum(origin, axis=1, keepdims=True)
        # Subtracting the origin keeps sinusoids exact, however late in a long stream tokens are.
        sine_i, cosine_i = self._waves(i - origin)
        sine_j, cosine_j = self._waves(j - origin)  # (1 or B, S, D/2)
        _, length, heads, _ = ops.shape(query)
        batch, *_ = prepend_batch(query, length)
        by_head = ops.transpose(query + self.position_bias, (2, 0, 1, 3))  # (N, B, T, H)
        seen = multiply_rows_per_head(by_head, ops.transpose(self.kernel, (1, 2, 0)))  # (N, B T, D)
        seen = ops.reshape(seen, (heads, batch, length, self.kernel.shape[0]))
        seen = ops.transpose(seen, (1, 0, 2, 3))  # (B, N, T, D)
        of_sine, of_cosine = ops.split(seen, 2, axis=3)
        # sin(i - j) = sin i cos j - cos i sin j and cos(i - j) = cos i cos j + sin i sin j
        sine_i, cosine_i = (ops.expand_dims(wave, axis=1) for wave in (sine_i, cosine_i))
        with_cosine_j = of_sine * sine_i + of_cosine * cosine_i
        with_sine_j = of_cosine * sine_i - of_sine * cosine_i
        rotated = ops.concatenate([with_cosine_j, with_sine_j], axis=3)
        waves = ops.transpose(ops.concatenate([cosine_j, sine_j], axis=2), (0, 2, 1))
        if not merges_tokens():
            return ops.matmul(rotated, ops.expand_dims(waves, axis=1))
        rotated = ops.reshape(rotated, (ops.shape(waves)[0], -1, self.kernel.shape[0]))
        shape = prepend_batch(query, heads, length, ops.shape(j)[1])
        return ops.reshape(ops.matmul(rotated, waves), shape)

    def _content_term(self, key):
        """Compute the content bias u · k for keys (B, S, K, H): float32 (B, N, 1, S)."""
        heads, size = self.content_bias.shape
        length, groups = ops.shape(key)[1:3]
        batch, *_ = prepend_batch(key, length)
        bias = ops.reshape(self.content_bias, (groups, heads // groups, size))
        keys = ops.transpose(key, (2, 0, 1, 3))  # (K, B, S, H)
        liked = multiply_rows_per_head(keys, ops.transpose(bias, (0, 2, 1)))  # (K, B S, N / K)
        liked = ops.reshape(liked, (groups, batch, length, heads // groups))
        return ops.reshape(ops.transpose(liked, (1, 0, 3, 2)), (batch, heads, 1, length))

    def _waves(self, positions):
        """Return the sines and the cosines of `positions`: float32 (1 or B, T, D/2) each."""
        width = self.kernel.shape[0]
        rates = float(self.max_wavelength) ** (-2.0 * np.arange(width // 2) / width)
        angle = compute_angles(ops.expand_dims(positions, axis=2), rates[None, None])
        return ops.sin(angle), ops.cos(angle)
