"""The rule that picks the kernel of an attention."""

import dataclasses
import functools

from keras_attention.attention.kernels import banded, chunked, dense, fused, ring

NAMES = {
    module.__name__.rpartition(".")[2]: module for module in (dense, fused, banded, chunked, ring)
}
CACHED = "dense_cached"  # `dense`, of keys and values as a cache keeps them


@dataclasses.dataclass(frozen=True)
class Choice:
    """A kernel, as `implementation=` names it, and why it was chosen; prints as both."""

    implementation: str
    reason: str

    def __str__(self):
        return f"{self.implementation}: {self.reason}"


def get_kernel(name):
    """Return the module of the kernel called `name`."""
    if name not in NAMES:
        raise ValueError(
            f"Unknown kernel {name!r}. Known: {', '.join(NAMES)}, or None to pick one."
        )
    return NAMES[name]


def bind(name, flash_attention=None):
    """Return `kernel(query, key, value, equation, visibility)`, which gives output and weights.

    All but `dense` give None for the weights.
    """
    if name == CACHED:
        return dense.dense_cached
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
    """Return the `Choice` of the first of these kernels that can compute an attention, and pays.

    1. the one that is named, or `fused` with `flash_attention=True`; a ValueError says why if it
       cannot;
    2. `ring`, where the active distribution splits the sequence among devices (JAX);
    3. `banded`, where the mask's band and global tokens are at most half of the keys, unless flash
       attention computes the band alone (JAX on GPUs, a causal window, 16-bit floats);
    4. `fused`, where the backend has one (JAX and PyTorch);
    5. `chunked`, from 2048 keys on, or 256 where no query looks ahead (but on GPUs and under XLA),
       and not in exported files;
    6. `dense`.

    Args:
        query, key: (B, T, N, H) and (B, S, K, H), tensors or `keras.KerasTensor`s.
        equation: `Equation`. visibility: `Visibility`.
        return_weights, implementation, flash_attention: as in `attend`.
    """
    if implementation == CACHED:
        return Choice(CACHED, "keys and values come from a cache")
    lengths = [size if isinstance(size, int) else None for size in (query.shape[1], key.shape[1])]
    refuses = functools.partial(_refuses, lengths, equation, visibility, return_weights)
    named = "fused" if flash_attention else implementation
    if named is not None and (reason := refuses(named)):
        if flash_attention:
            raise ValueError(
                f"flash_attention=True is impossible here: {reason}. Leave it out to take another "
                "kernel where there is none."
            )
        raise ValueError(
            f"implementation={implementation!r} cannot compute this attention: {reason}. Leave "
            "implementation= out to have one chosen that can."
        )
    if 0 in lengths:
        return Choice("dense", "there are no queries, or no keys")
    if flash_attention:
        return Choice("fused", "flash attention is asked for")
    if named is not None:
        return Choice(named, "it is named, or the layer computes with no other")
    for name in ("ring", "banded", "fused", "chunked"):
        if refuses(name):
            continue
        if name == "banded" and not refuses("fused"):
            if fused.takes_window(query, lengths, visibility, flash_attention):
                continue
        if reason := NAMES[name].pays(lengths, visibility):
            return Choice(name, reason)
    queries, keys = lengths
    return Choice("dense", refuses("chunked") or f"{queries} queries and {keys} keys are few")


def _refuses(lengths, equation, visibility, return_weights, name):
    """Return why the kernel called `name` cannot compute an attention, or None."""
    kernel = get_kernel(name)
    if kernel is dense:
        return None
    if reason := kernel.refuses(lengths, equation, visibility):
        return reason
    if return_weights:
        return "the weights are asked for, which only dense holds"
    if equation.dropout is not None:
        return "dropout on the weights is active, which only dense applies"
    return None
