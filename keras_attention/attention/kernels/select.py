"""The rule that picks the kernel of an attention, and `explain`, which tells it."""

import dataclasses

import keras

from keras_attention import normalizers
from keras_attention.attention.kernels import banded, chunked, dense, fused, ring, sliced
from keras_attention.attention.kernels.bias_and_mask import BiasAndMask
from keras_attention.core import scope, token_layout

NAMES = {
    module.__name__.rpartition(".")[2]: module for module in (dense, fused, banded, chunked, ring)
}

LONG = 2048  # keys: from here on slices, a tenth slower than dense, save memory that matters
LONG_CAUSAL = 256  # keys, where no query looks ahead: from here on slices are faster on a CPU


@dataclasses.dataclass(frozen=True)
class Case:
    """An attention to compute, as the rule sees it.

    Args:
        query_length, key_length: int, T and S, or None where they are not known.
        score, normalizer, mask: the parts.
        positions: bool, whether positions are given.
        biased: bool, whether something is added to the scores.
        weights: bool, whether the weights are asked for, to be returned or recorded.
        dropout: bool, whether weights are dropped.
        flash_window: bool, whether the device's flash attention skips what is outside a causal
            window, which the mask is.
    """

    query_length: int | None
    key_length: int | None
    score: object
    normalizer: object
    mask: object = None
    positions: bool = False
    biased: bool = False
    weights: bool = False
    dropout: bool = False
    flash_window: bool = False


@dataclasses.dataclass(frozen=True)
class Choice:
    """A kernel, as `implementation=` names it, and why it was chosen; prints as both."""

    implementation: str
    reason: str

    def __str__(self):
        return f"{self.implementation}: {self.reason}"


def get_kernel(name):
    """The module of the kernel called `name`."""
    if name not in NAMES:
        raise ValueError(
            f"Unknown kernel {name!r}. Known: {', '.join(NAMES)}, or None to pick one."
        )
    return NAMES[name]


def run_kernel(name, *args, **kwargs):
    """Output and weights (None but for `dense`) by the kernel called `name`, or `dense_cached`."""
    compute = dense.dense_cached if name == "dense_cached" else getattr(get_kernel(name), name)
    return compute(*args, **kwargs)


def choose(case, implementation=None, flash_attention=None):
    """The kernel for `case`: the first of these that can compute it, and pays.

    1. the one that is named, or `fused` with `flash_attention=True`; a ValueError says why if it
       cannot;
    2. `ring`, where the active distribution splits the sequence among devices (JAX);
    3. `banded`, where the mask's band and global tokens are at most half of the keys, unless flash
       attention computes the band alone (JAX on GPUs, a causal window, 16-bit floats);
    4. `fused`, where the backend has one (JAX and PyTorch);
    5. `chunked`, from 2048 keys on, or 256 where no query looks ahead (but on GPUs and under XLA),
       and not in exported files;
    6. `dense`.
    """
    if flash_attention:
        reason = fused.refuses(case)
        if reason is not None:
            raise ValueError(
                f"flash_attention=True is impossible here: {reason}. Leave it out to take another "
                "kernel where there is none."
            )
        return Choice("fused", "flash attention is asked for")
    if implementation is not None:
        reason = get_kernel(implementation).refuses(case)
        if reason is not None:
            raise ValueError(
                f"implementation={implementation!r} cannot compute this attention: {reason}. Leave "
                "implementation= out to have one chosen that can."
            )
        return Choice(implementation, "it is named, or the layer computes with no other")
    for name, pays in _PAYS.items():
        reason = None if get_kernel(name).refuses(case) else pays(case)
        if reason:
            return Choice(name, reason)
    return Choice("dense", _why_dense(case))


def explain(
    layer,
    query_length,
    key_length=None,
    *,
    training=False,
    use_causal_mask=False,
    return_attention_scores=False,
    positions=False,
):
    """Which kernel an attention layer computes with, and why.

    Args:
        layer: `Attention`, `MultiHeadAttention` or a layer made of it; of a block, its `attention`.
        query_length, key_length: int, T and S; None means that it is not known when traced. S
            defaults to T.
        training, use_causal_mask, return_attention_scores: as in a call of the layer.
        positions: bool, whether the call gives positions.

    Returns:
        `Choice`.

    Example:

    ```python
    import keras_attention as ka

    layer = ka.attention.MultiHeadAttention(8, 64, mask=ka.masks.Window(128))
    assert ka.attention.explain(layer, 4096).implementation == "banded"
    print(ka.attention.explain(layer, 100))  # dense: 100 queries and 100 keys are few
    ```
    """
    if not hasattr(layer, "implementation"):
        raise ValueError(
            f"{layer!r} has no implementation to choose: expected an attention layer such as "
            "MultiHeadAttention; of a block, its `attention`."
        )
    normalizer = layer.normalizer
    if getattr(layer, "talking_heads", False):
        normalizer = normalizers.Normalizer()  # talking heads wrap it
    elif getattr(layer, "sink", False):
        normalizer = dataclasses.replace(normalizer, plus_one=True)  # which is a sink at 0
    lengths = query_length, query_length if key_length is None else key_length
    mask = layer.mask_part(use_causal_mask)
    flash_window = not positions and fused.takes_window(
        BiasAndMask(mask),
        lengths,
        layer.compute_dtype,
        getattr(layer, "key_dim", None) or 8,
        layer._flash_attention,
    )
    case = Case(
        *lengths,
        layer.score,
        normalizer,
        mask,
        positions=positions,
        biased="bias" in getattr(layer.position, "roles", ()),
        weights=return_attention_scores,
        dropout=bool(training and layer.dropout),
        flash_window=flash_window,
    )
    implementation, flash = layer.implementation, layer._flash_attention
    if implementation is None and not flash:
        return choose(case)
    return choose(dataclasses.replace(case, weights=False), implementation, flash)


def _ring_pays(case):
    devices = token_layout.count_sequence_devices() or 1
    return f"the sequence is split among {devices} devices" if devices > 1 else None


def _banded_pays(case):
    if case.flash_window and fused.refuses(case) is None:
        return None
    reach = case.mask.reach()
    seen = reach.left + reach.right + 1 + len(reach.tokens)
    seen += banded.rows_at_once(reach)
    if seen > case.key_length / 2:
        return None
    return f"a slice of the queries sees {seen} of {case.key_length} keys"


def _fused_pays(case):
    return f"{keras.backend.backend()} has an attention of its own"


def _chunked_pays(case):
    least = LONG_CAUSAL if _looks_back(case) and _runs_on_cpu() else LONG
    if scope.current(scope.Export) or case.key_length < least:
        return None
    rows = chunked.rows_at_once(case.key_length)
    if case.query_length <= rows:
        return None
    return f"{case.key_length} keys are many; memory stays that of {rows} queries"


def _runs_on_cpu():
    """Whether slices skip half of the work of a causal mask at once, as on CPUs."""
    if keras.backend.backend() != "tensorflow":
        return True
    from keras_attention.attention.kernels import sliced_tensorflow

    return sliced_tensorflow.keeps_order()


def _looks_back(case):
    """Whether the mask hides most of what comes later, which is about half of the scores."""
    if case.mask is None or case.positions or case.mask.global_tokens():
        return False
    ahead = case.mask.band()[1]
    return ahead is not None and ahead <= case.key_length / 8


_PAYS = {
    "ring": _ring_pays,
    "banded": _banded_pays,
    "fused": _fused_pays,
    "chunked": _chunked_pays,
}


def _why_dense(case):
    reason = sliced.refuses(case)
    return reason or f"{case.query_length} queries and {case.key_length} keys are few"
