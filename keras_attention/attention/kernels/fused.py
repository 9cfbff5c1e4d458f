"""The backend's own attention: flash attention on GPUs, where there is one."""

import dataclasses

import keras
from keras import ops

from keras_attention.attention.kernels.axis_pieces import WholeAxis
from keras_attention.normalizers import Softmax


def refuses(lengths, equation, visibility):
    """Return why it cannot compute an attention, or None."""
    if keras.backend.backend() not in ("jax", "torch"):
        return f"{keras.backend.backend()} has no attention of its own"
    if equation.score.fold is None:
        return f"{equation.score} is no dot product"
    normalizer = equation.normalizer
    if normalizer != Softmax(temperature=normalizer.temperature):
        return f"{normalizer} is not the softmax that backends have"
    if equation.bias is not None or equation.position_biases:
        return "scores have a bias, which not every backend's attention takes"
    return None


def pays(lengths, visibility):
    """Return why it is the kernel to take."""
    return f"{keras.backend.backend()} has an attention of its own"


def takes_window(query, lengths, visibility, flash_attention=None):
    """Return whether flash attention computes a causal window, and no keys outside of it, here.

    Args:
        query: (B, T, N, H). lengths: T and S, ints or None. flash_attention: as in `fused`.
    """
    if keras.backend.backend() != "jax" or flash_attention is False:
        return False
    from keras_attention.attention.kernels import fused_jax

    visible = VisibleKeys.without_tensor(visibility, *lengths)
    if visible is None or visible.window is None or fused_jax.simplify(visible) is None:
        return False
    return fused_jax.has_flash(query.dtype, query.shape[3] or 8)  # 8: flash attention takes it


def fused(query, key, value, equation, visibility, flash_attention=None):
    """As `dense`, by the attention of JAX or PyTorch (Dao et al., 2022, on GPUs).

    A mask that is causal, a causal window or padding at the end is told in numbers where the
    backend takes it so; any other is a tensor, (B or 1, N or 1, T, S). ALiBi and other biases are
    left to other kernels.

    Args:
        flash_attention: bool, whether flash attention has to be taken, or None where it can.
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
    # Zeros change no score, and JAX takes heads of one size only.
    heads = [
        ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, size - x.shape[3])]) if x.shape[3] < size else x
        for x in (query, key, value)
    ]
    output = backend.attend(*heads, visible, flash_attention)[..., : value.shape[3]]
    return visible.hide_empty_rows(output), None


@dataclasses.dataclass(frozen=True)
class VisibleKeys:
    """Which keys queries may attend to, as backends are told.

    Args:
        is_causal: bool, whether key j is hidden from query i when j > i.
        window: int, how many keys before its own a query sees, or None for all.
        query_lengths, key_lengths: int32 (B,), at least 1, or None: tokens from there on are
            padding.
        mask: bool (B or 1, N or 1, T, S), or None: then all above say is all.
        seen: which queries see a key at all, bool (B or 1, N or 1, T or 1, 1), or None for all.
    """

    is_causal: bool = False
    window: int | None = None
    query_lengths: object = None
    key_lengths: object = None
    mask: object = None
    seen: object = None

    @classmethod
    def without_tensor(cls, visibility, queries, keys):
        """Return what needs no mask tensor, of T queries and S keys (ints or symbols), or None."""
        band, lengths = visibility.band(), visibility.key_lengths
        if band is None:
            return None
        left, right = band
        if band == (None, None):
            visible = cls()
        elif left is None and right == 0:
            visible = cls(is_causal=True)
        elif left is not None and left >= 0 == right and isinstance(queries, int):
            if queries != keys:  # some queries may see nothing, and backends differ
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
        """Return any mask, as a tensor."""
        rows, columns = WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[1])
        mask = visibility.allows(*visibility.positions(rows, columns), visibility.tensor)
        if mask is None:
            return cls()
        seen = ops.any(mask, axis=3, keepdims=True)
        mask = ops.logical_or(mask, ops.logical_not(seen))  # no row is empty, which gives NaN
        return cls(mask=mask, seen=seen)

    @property
    def lengths_are_implied(self):
        """Whether the causal mask alone hides what comes after the tokens from all of them.

        So it is where queries and keys are the same: padding comes after every token, and what
        it attends to itself is not used.
        """
        same = self.key_lengths is not None and self.query_lengths is self.key_lengths
        return self.is_causal and same

    def without_lengths(self):
        """Return the same without lengths that the causal mask implies."""
        return dataclasses.replace(self, query_lengths=None, key_lengths=None)

    def hide_empty_rows(self, output):
        """Return `output` (B, T, N, Hv) with zeros where a query sees nothing, or is padding."""
        if self.seen is not None:
            seen = ops.cast(ops.transpose(self.seen, (0, 2, 1, 3)), output.dtype)
            output = ops.multiply(output, seen)
        if self.query_lengths is None:
            return output
        index = ops.expand_dims(ops.arange(ops.shape(output)[1], dtype="int32"), axis=0)
        tokens = index < ops.expand_dims(self.query_lengths, axis=1)  # (B, T)
        tokens = ops.expand_dims(ops.expand_dims(tokens, axis=2), axis=3)
        return ops.where(tokens, output, ops.zeros_like(output))  # whatever the backend left there


def _backend():
    """Return the module that calls the attention of the backend."""
    if keras.backend.backend() == "jax":
        from keras_attention.attention.kernels import fused_jax

        return fused_jax
    from keras_attention.attention.kernels import fused_torch

    return fused_torch
