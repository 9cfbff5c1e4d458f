"""The rule that chooses the kernel of an attention call."""

import dataclasses
import functools

from keras_attention.attention.kernels import banded, chunked, dense, fused, ring

NAMES = {
    module.__name__.rpartition(".")[2]: module for module in (dense, fused, banded, chunked, ring)
}
CACHED = "dense_cached"  # `dense` for keys and values in the layout of a cache


@dataclasses.dataclass(frozen=True)
class Choice:
    """The kernel that computes a call of attention. `choose` returns it.

    Attributes:
        implementation: str, the name of the kernel, such as `"fused"`.
        reason: str, why this kernel was chosen.
    """

    implementation: str
    reason: str

    def __str__(self):
        return f"{self.implementation}: {self.reason}"


def get_kernel(name):
    """Return the module that computes attention with the kernel called `name`, like "dense".

    Raise a ValueError if the name is unknown.
    """
    if name not in NAMES:
        raise ValueError(
            f"Unknown kernel {name!r}. Known: {', '.join(NAMES)}, or None for an automatic choice."
        )
    return NAMES[name]


def bind(name, return_weights=True, flash_attention=None):
    """Return the kernel called `name`: a function of query, key, value, equation, visibility.

    The function returns the output and the weights. Without `return_weights`, and from all kernels
    but `dense`, the weights may be None. `flash_attention` only matters for `fused`: True requires
    flash attention, False excludes it, None uses it if possible.
    """
    if name == CACHED:
        return functools.partial(dense.dense, cached=True)
    if name == "dense" and not return_weights:
        return dense.dense_output
    kernel = getattr(get_kernel(name), name)
    if name == "fused":
        return functools.partial(kernel, flash_attention=flash_attention)
    return kernel


def choose(
    query,
    key,
    equation,
    visibility,
    return_weights=False,
    implementation=None,
    flash_attention=None,
):
    """Return the `Choice` of the kernel for a call: the first in this list that is suitable.

    1. The kernel that `implementation` names, or `fused` with `flash_attention=True`. If it cannot
       compute this attention, a ValueError gives the reason.
    2. `ring`, if the active distribution splits the sequence among devices (JAX).
    3. `banded`, if the band and the global tokens of the mask are at most half of the keys. It is
       skipped if flash attention can ignore the keys outside the band (JAX on GPUs, a causal
       window, 16-bit floats).
    4. `fused`, if the backend has its own attention function (JAX and PyTorch).
    5. `chunked`, if there are at least 2048 keys, or at least 256 keys on a CPU without XLA if no
       query looks ahead. It is not used in exported files.
    6. `dense`.

    Args:
        query: (B, T, N, H), a tensor or a `keras.KerasTensor`.
        key: (B, S, K, H), a tensor or a `keras.KerasTensor`.
        equation: the `Equation` to compute: score, bias, normalizer and dropout.
        visibility: the `Visibility` of the call: its masks and positions.
        return_weights: bool, whether the weights are needed too.
        implementation: name of the kernel to use, or None.
        flash_attention: True requires flash attention, False excludes it, None uses it if possible.
    """
    if implementation == CACHED:
        return Choice(CACHED, "keys and values come from a cache")
    lengths = [size if isinstance(size, int) else None for size in (query.shape[1], key.shape[1])]
    find_obstacle = functools.partial(_find_obstacle, lengths, equation, visibility, return_weights)
    named = "fused" if flash_attention else implementation
    if named is not None and (reason := find_obstacle(named)):
        if flash_attention:
            raise ValueError(
                f"flash_attention=True is impossible here: {reason}. Leave it out to use another "
                "kernel."
            )
        raise ValueError(
            f"implementation={implementation!r} cannot compute this attention: {reason}. Leave "
            "implementation= out for an automatic choice."
        )
    if 0 in lengths:
        return Choice("dense", "there are no queries, or no keys")
    if flash_attention:
        return Choice("fused", "flash attention is required")
    if named is not None:
        return Choice(named, "implementation= names it, or the layer needs it")
    for name in ("ring", "banded", "fused", "chunked"):
        if find_obstacle(name):
            continue
        if name == "banded" and not find_obstacle("fused"):
            if fused.takes_window(query, lengths, visibility, flash_attention):
                continue
        if reason := NAMES[name].find_advantage(lengths, visibility):
            return Choice(name, reason)
    queries, keys = lengths
    return Choice("dense", find_obstacle("chunked") or f"{queries} queries and {keys} keys are few")


def _find_obstacle(lengths, equation, visibility, return_weights, name):
    """Return the reason (str) why the kernel `name` cannot compute a call, or None if it can.

    `lengths` is (T, S), each an int, or None if dynamic. `equation` has the score, normalizer and
    position encoding of the call, and `visibility` its masks and positions. `return_weights` is a
    bool.
    """
    kernel = get_kernel(name)
    if kernel is dense:
        return None
    if reason := kernel.find_obstacle(lengths, equation, visibility):
        return reason
    if return_weights:
        return "the weights are requested, and only dense returns them"
    if equation.dropout is not None:
        return "dropout on the weights is active, and only dense applies it"
    return None
