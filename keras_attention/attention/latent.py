"""Multi-head latent attention: all heads' keys and values come from one narrow vector per token."""

import dataclasses
import functools

import keras
from keras import ops

from keras_attention.attention import arguments, inputs, kernels
from keras_attention.attention.base import AttentionLayer, join_masks
from keras_attention.attention.projection import PROJECTION_AXES, ProjectionOwner, project
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, scope, shapes
from keras_attention.core.shapes import prepend_batch


@keras.saving.register_keras_serializable(package="keras_attention")
class LatentAttention(AttentionLayer, ProjectionOwner):
    """Multi-head latent attention, MLA (DeepSeek-AI, 2024, "DeepSeek-V2", section 2.1).

    `score = (q · k + q_rotated · k_rotated) / √(H + R)`. Each token of the value is projected to a
    latent vector of C features and to a rotated key of R features. The keys and values of all heads
    are projections of the latent vector, and all heads share the rotated key. A cache stores only
    these C + R features per token, where `MultiHeadAttention` stores 2NH.

    As in the published models, projections have no bias, and latent vectors are normalized by their
    root mean square.

    Args:
        num_heads: int, N, the number of heads.
        key_dim: int, H, the size of a query or key head without the rotated part (d_h in the
            paper).
        latent_dim: int, C, the size of the latent vector of keys and values (d_c).
        rotary_dim: int, R, the size of the rotated part (d_h^R).
        query_latent_dim: int, the size of a latent vector of queries (d_c'), which reduces the
            number of weights. None projects queries directly.
        value_dim: int, the size of a value head. None means H.
        position: an encoding of `keras_attention.positions` that only rotates, its name, its
            config, or None.
        kernel_initializer: initializer of the projections' kernels.
        kwargs: other arguments of `AttentionLayer`, except the score.

    Call arguments: those of `AttentionLayer`, except `key`.

    For a query that sees no key, the output is exactly zero. The output has the query's implicit
    Keras mask. A call computes `compress` of the value and then `attend_compressed`. If you decode
    without the caches of this package, store the results of `compress`, as in this example:

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.LatentAttention(num_heads=4, key_dim=6, latent_dim=8, rotary_dim=4)
    whole = layer(x, x, use_causal_mask=True)
    cache = layer.compress(x[:, :6])  # (B, S, C + R)
    assert cache.shape == (2, 6, 12)
    cache = np.concatenate([cache, layer.compress(x[:, 6:], [6])], axis=1)
    last = layer.attend_compressed(x[:, 6:], cache, ka.attention.Visibility(query_positions=[6]))
    assert np.allclose(last, whole[:, 6:], atol=1e-5)
    ```
    """

    _parts = ("normalizer", "mask")
    own_arguments = (
        *("num_heads", "key_dim", "latent_dim", "rotary_dim", "query_latent_dim", "value_dim"),
        "kernel_initializer",
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        latent_dim,
        rotary_dim,
        query_latent_dim=None,
        value_dim=None,
        position="rotary",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(score="dot", position=position, **kwargs)  # the queries are scaled
        arguments.check_rotates_only(self.position)
        self.num_heads, self.key_dim = num_heads, key_dim
        self.latent_dim, self.rotary_dim = latent_dim, rotary_dim
        self.query_latent_dim = query_latent_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        checks.check_whole_numbers(
            self, "num_heads", "key_dim", "latent_dim", "rotary_dim", "value_dim"
        )
        checks.check_whole_numbers(self, "query_latent_dim", optional=True)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        width, value_width = tuple(query_shape)[-1:], tuple(value_shape)[-1:]
        latent, heads = (self.latent_dim,), self.num_heads
        query_heads = (heads, self.key_dim + self.rotary_dim)
        self._query_down = None
        if self.query_latent_dim is None:
            self._query_dense = project(self, "query", width, query_heads)
        else:
            query_latent = (self.query_latent_dim,)
            self._query_down = project(
                self, "query_down", width, query_latent, axes=("embed", "latent")
            )
            self._query_norm = self._norm("query_norm", self.query_latent_dim)
            self._query_dense = project(
                self, "query", query_latent, query_heads, axes=("latent", "heads", "head_dim")
            )
        self._latent_dense = project(self, "latent", value_width, latent, axes=("embed", "latent"))
        self._latent_norm = self._norm("latent_norm", self.latent_dim)
        self._rotary_key_dense = project(
            self, "rotary_key", value_width, (1, self.rotary_dim), axes=PROJECTION_AXES["key"]
        )
        up = functools.partial(project, self, axes=("latent", "heads", "head_dim"))
        self._key_up = up("key_up", latent, (heads, self.key_dim))
        self._value_up = up("value_up", latent, (heads, self.value_dim))
        self._output_dense = project(self, "attention_output", (heads, self.value_dim), width)
        self.build_parts((query_shape[0], None, heads, self.rotary_dim))

    def _norm(self, name, size):
        norm = keras.layers.RMSNormalization(epsilon=1e-6, dtype=self.dtype_policy, name=name)
        norm.supports_masking = True
        norm.build((None, None, size))
        return norm

    def project_query(self, query):
        """Project queries (B, T, D) to heads (B, T, N, H + R), neither scaled nor rotated.

        The last R = `rotary_dim` features of each head are rotated later. `query` is (B, T, D).
        """
        if self._query_down is not None:
            query = self._query_norm(self._query_down(query))
        return self._query_dense(query)

    def project_key_value(self, value, key, visibility):
        if key is not value:
            raise ValueError(f"{self.name} makes its keys from the values. Leave key out.")
        return {"latent": self.compress(value, visibility.key_positions)}

    project_for_cache = project_key_value  # already rotated

    @property
    def cache_shapes(self):
        return {"latent": (self.latent_dim + self.rotary_dim,)}

    @property
    def head_size(self):
        return self.key_dim + self.rotary_dim

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        latent, absorb = heads["latent"], False
        if implementation == kernels.CACHED:
            absorb, implementation = self._key_up.quantization_mode is None, None
        how = return_weights, implementation
        return self._attend_latent(query, latent, absorb, equation, visibility, *how)

    def compress(self, value, positions=None):
        """Compute what a cache must store of `value`: its latent vectors and rotated keys.

        To add later tokens, concatenate their results along S.

        Args:
            value: (B, S, D), the tokens to attend to.
            positions: int (S,) or (B, S), the positions of the tokens. None means 0, 1, 2, ...

        Returns:
            (B, S, C + R), where C is `latent_dim` and R is `rotary_dim`.
        """
        self._check_built()
        latent = self._latent_norm(self._latent_dense(value))
        rotated = self._rotary_key_dense(value)  # (B, S, 1, R)
        if self.position is not None:
            rotated = self.position.rotate_key(rotated, positions)
        rotated = ops.reshape(
            rotated, prepend_batch(rotated, ops.shape(rotated)[1], self.rotary_dim)
        )
        return ops.concatenate([latent, rotated], axis=2)

    def attend_compressed(self, query, compressed, visibility=None, *, absorb=True, training=None):
        """Compute the layer's output (B, T, D) for `query` and stored results of `compress`.

        Args:
            query: (B, T, D), the tokens that attend.
            compressed: (B, S, latent_dim + rotary_dim), the result of `compress`.
            visibility: `Visibility` that restricts attention in addition to the layer's mask, or
                None. If it has no positions, queries have the positions 0, 1, 2, ...
            absorb: bool, whether to project queries and outputs instead of keys and values. The
                output is the same. It is faster for few queries, as in decoding, and slower for
                many.
            training: bool, whether dropout is active.
        """
        self._check_built()
        visibility = Visibility() if visibility is None else visibility
        visibility = dataclasses.replace(visibility, mask=join_masks(self.mask, visibility.mask))
        output, weights = self._attend_latent(
            self.project_query(query),
            compressed,
            absorb,
            self.make_equation(training),
            visibility,
            scope.wants_weights(self),
            self.implementation,
        )
        scope.record_weights(self, weights)
        return self._output_dense(output)

    def _attend_latent(self, query, compressed, absorb, equation, visibility, *how):
        """Attend with query heads (B, T, N, H + R) to the result of `compress`.

        `compressed` is this result (B, S, C + R). With `absorb=True`, queries and outputs are
        projected instead of keys and values. `how` are `return_weights` (bool) and the name of the
        kernel, or None. Return the output (B, T, N, Hv), and the weights or None.
        """
        i, j = visibility.query_positions, visibility.key_positions
        lengths = query.shape[1], compressed.shape[1]
        inputs.check_lengths(visibility.mask, self.position, *lengths, i, j)
        query = ops.multiply(query, (self.key_dim + self.rotary_dim) ** -0.5)
        query, rotated_query = ops.split(query, [self.key_dim], axis=3)
        if self.position is not None:
            rotated_query = self.position.rotate(rotated_query, i)
        compressed = ops.cast(compressed, self.compute_dtype)
        latent, rotated = ops.split(compressed, [self.latent_dim], axis=2)
        rotated = ops.expand_dims(rotated, axis=2)  # (B, S, 1, R)
        if absorb:  # one key head and one value head for all: (B, S, 1, C + R) and (B, S, 1, C)
            query = self._through(self._key_up, "btnh,cnh->btnc", query)
            value = ops.expand_dims(latent, axis=2)
            key = ops.concatenate([value, rotated], axis=3)
        else:
            rotated = shapes.tile(rotated, (1, 1, self.num_heads, 1))
            key = ops.concatenate([self._key_up(latent), rotated], axis=3)
            value = self._value_up(latent)
        query = ops.concatenate([query, rotated_query], axis=3)
        equation = dataclasses.replace(equation, position=None)  # rotated already
        output, weights = self.attend(query, key, value, equation, visibility, *how)
        if absorb:
            output = self._through(self._value_up, "btnc,cnh->btnh", output)
        return output, weights

    def _check_built(self):
        if not self.built:
            raise ValueError(
                f"{self.name} has no weights yet. Call it, or its build(query_shape, value_shape), "
                "before compress and attend_compressed."
            )

    @staticmethod
    def _through(projection, equation, x):
        """Return the einsum of `x` and the kernel of a projection, where `equation` is a str."""
        if projection.quantization_mode is not None:
            raise ValueError(
                f"absorb=True needs the kernel of {projection.name!r}, which is quantized "
                f"({projection.quantization_mode}). Use absorb=False."
            )
        return ops.einsum(equation, x, ops.cast(projection.kernel, x.dtype))
