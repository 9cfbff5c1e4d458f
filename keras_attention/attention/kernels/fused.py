"""The backend's own attention function: flash attention on GPUs, if available."""

import dataclasses

import keras
from keras import ops

from keras_attention.attention.kernels.axis_pieces import WholeAxis
from keras_attention.normalizers import Softmax


def find_obstacle(lengths, equation, visibility):
    """Return the reason (str) why the backend's function cannot compute a call, or None if it can.

    `lengths` is (T, S), each an int, or None if dynamic. `equation` has the score, normalizer and
    position encoding of the call, and `visibility` its masks and positions.
    """
    if keras.backend.backend() not in ("jax", "torch"):
        return f"{keras.backend.backend()} has no attention function of its own"
    if equation.score.fold is None:
        return f"{equation.score} is not a dot product"
    normalizer = equation.normalizer
    if normalizer != Softmax(temperature=normalizer.temperature):
        return f"{normalizer} is not the plain softmax of backends"
    if equation.bias is not None or equation.position_biases:
        return "scores have a bias, and not every backend takes one"
    return None


def find_advantage(lengths, visibility):
    """Return the reason (str) why the backend's function is the best choice for a call.

    `lengths` and `visibility` are not used. Every kernel has this function, with the same
    arguments.
    """
    return f"{keras.backend.backend()} has an attention function of its own"


def takes_window(query, lengths, visibility, flash_attention=None):
    """Return whether flash attention can run here and skips keys outside a causal window.

    Args:
        query: (B, T, N, H).
        lengths: (T, S), ints or None if dynamic.
        visibility: the `Visibility` of the call.
        flash_attention: True requires flash attention, False excludes it, None uses it if possible.
    """
    if keras.backend.backend() != "jax" or flash_attention is False:
        return False
    from keras_attention.attention.kernels import fused_jax

    visible = VisibleKeys.without_tensor(visibility, *lengths)
    if visible is None or visible.window is None or fused_jax.simplify(visible) is None:
        return False
    return fused_jax.has_flash(query.dtype, query.shape[3] or 8)  # 8 is a valid size


def fused(query, key, value, equation, visibility, flash_attention=None):
    """Compute attention by the attention function of JAX or PyTorch.

    It returns the output of `dense`, and None for the weights. On GPUs this can be flash attention
    (Dao et al., 2022). If the backend supports it, a causal mask is passed as a flag, a causal
    window as its size, and padding at the end as lengths. Any other mask is passed as a tensor
    (B or 1, N or 1, T, S).

    Args:
        query, key, value: (B, T, N, H), (B, S, K, H) and (B, S, K, Hv), the heads.
        equation: the `Equation` to compute: score, bias, normalizer and dropout.
        visibility: the `Visibility` of the call: its masks and positions.
        flash_attention: True requires flash attention, False excludes it, None uses it if possible.
    """
    query, key, scale = equation.score.fold(query, key)
    scale = scale / equation.normalizer.temperature
    query = ops.multiply(query, ops.cast(scale, query.dtype))
    visible = VisibleKeys.without_tensor(visibility, query.shape[1], key.shape[1])
    backend = _backend()
    visible = None if visible is None else backend.simplify(visible)
    if visible is None:
        visible = VisibleKeys.with_tensor(visibility, query, key)
    size = max(query.shape[3], value.shape[3])
    # JAX requires heads of equal sizes. Padding with zeros does not change the scores.
    heads = [
        ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, size - x.shape[3])]) if x.shape[3] < size else x
        for x in (query, key, value)
    ]
    output = backend.attend(*heads, visible, flash_attention)[..., : value.shape[3]]
    return visible.hide_empty_rows(output), None


@dataclasses.dataclass(frozen=True)
class VisibleKeys:
    """The keys that queries see, as arguments of a backend's attention function.

    Args:
        is_causal: bool, whether key j is hidden from query i when j > i.
        window: int, the number of keys before its own that a query sees, or None for all.
        query_lengths: int32 (B,), at least 1, the number of queries before padding, or None.
        key_lengths: int32 (B,), at least 1, the number of keys before padding, or None.
        mask: bool (B or 1, N or 1, T, S), which replaces all arguments above, or None.
        seen: bool (B or 1, N or 1, T or 1, 1), whether a query sees any key. None means that all
            do.
    """

    is_causal: bool = False
    window: int | None = None
    query_lengths: object = None
    key_lengths: object = None
    mask: object = None
    seen: object = None

    @classmethod
    def without_tensor(cls, visibility, queries, keys):
        """Convert a `Visibility` to `VisibleKeys` without a mask tensor, if possible.

        Return None if a mask tensor is needed. `queries` and `keys` are the lengths T and S.
        """
        band, lengths = visibility.band(), visibility.key_lengths
        if band is None:
            return None
        left, right = band
        if band == (None, None):
            visible = cls()
        elif left is None and right == 0:
            visible = cls(is_causal=True)
        elif left is not None and left >= 0 == right and isinstance(queries, int):
            if queries != keys:  # backends disagree on queries that see no key
                return None
            visible = cls(is_causal=True, window=left)
        else:
            return None
        if lengths is None:
            return visible
        query_lengths, key_lengths = (
            None if x is None else ops.maximum(ops.cast(x, "int32"), 1)
            for x in (visibility.query_lengths, lengths)
        )
        if visibility.query_lengths is lengths and queries == keys:
            key_lengths = query_lengths
        rows = ops.reshape(lengths > 0, (-1, 1, 1, 1))
        return dataclasses.replace(
            visible, query_lengths=query_lengths, key_lengths=key_lengths, seen=rows
        )

    @classmethod
    def with_tensor(cls, visibility, query, key):
        """Convert a `Visibility` to `VisibleKeys` with all masks in one tensor.

        `query` (B, T, N, H) and `key` (B, S, K, H) are only used for their lengths.
        """
        rows, columns = WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[1])
        mask = visibility.allows(*visibility.positions(rows, columns), visibility.tensor)
        if mask is None:
            return cls()
        seen = ops.any(mask, axis=3, keepdims=True)
        mask = ops.logical_or(mask, ops.logical_not(seen))  # a row without keys would be NaN
        return cls(mask=mask, seen=seen)

    @property
    def lengths_are_implied(self):
        """Return whether the causal mask already hides the padding from all tokens.

        It does in self-attention, because padding comes after all tokens. The outputs of padding
        itself are not used.
        """
        same = self.key_lengths is not None and self.query_lengths is self.key_lengths
        return self.is_causal and same

    def without_lengths(self):
        """Return a copy without lengths. Use it only if `lengths_are_implied`."""
        return dataclasses.replace(self, query_lengths=None, key_lengths=None)

    def hide_empty_rows(self, output):
        """Return `output` (B, T, N, Hv) with zeros for padding and for queries that see no key."""
        if self.seen is not None:
            seen = ops.cast(ops.transpose(self.seen, (0, 2, 1, 3)), output.dtype)
            output = ops.multiply(output, seen)
        if self.query_lengths is None:
            return output
        index = ops.expand_dims(ops.arange(ops.shape(output)[1], dtype="int32"), axis=0)
        tokens = index < ops.expand_dims(self.query_lengths, axis=1)  # (B, T)
        tokens = ops.expand_dims(ops.expand_dims(tokens, axis=2), axis=3)
        return ops.where(tokens, output, ops.zeros_like(output))  # the output may contain NaN


def _backend():
    """Return our module that calls the attention function of JAX or PyTorch."""
    if keras.backend.backend() == "jax":
        from keras_attention.attention.kernels import fused_jax

        return fused_jax
    from keras_attention.attention.kernels import fused_torch

    return fused_torch
