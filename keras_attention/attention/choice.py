"""Which kernel computes an attention: one rule, which can be asked."""

import dataclasses

import keras

from keras_attention import normalizers, scope
from keras_attention.attention import kernels, masking

LONG = 2048  # keys from which slices, a tenth slower than the square, spare memory that matters
LONG_AHEAD = 256  # where nobody looks ahead, from which they are faster: measured on a CPU


@dataclasses.dataclass(frozen=True)
class Case:
    """What the rule looks at.

    Args:
        query_length, key_length: int, T and S, or None where they are not known.
        score, normalizer, mask: the parts.
        positions: bool, whether positions are given, not counted.
        biased: bool, whether something is added to the scores.
        weights: bool, whether the weights are asked for, to be returned or recorded.
        dropout: bool, whether weights are dropped.
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


@dataclasses.dataclass(frozen=True)
class Choice:
    """A kernel's name and why it was chosen; prints as both."""

    kernel: str
    reason: str

    def __str__(self):
        return f"{self.kernel}: {self.reason}"


def choose(case, kernel=None):
    """The kernel for `case`: the first of these that can compute it, and pays.

    1. the one that is named; a ValueError says why if it cannot;
    2. `banded`, where the mask's band and global tokens are at most half of the keys;
    3. `fused`, where the backend has one (JAX and PyTorch);
    4. `chunked`, from 2048 keys on, or 256 where nobody looks ahead, but not in exported files;
    5. `dense`.
    """
    if kernel is not None:
        reason = kernels.module(kernel).refuses(case)
        if reason is not None:
            raise ValueError(f"kernel={kernel!r} cannot compute this attention: {reason}.")
        return Choice(kernel, "it is named, or the layer computes with no other")
    for name, pays in _PAYS.items():
        reason = None if kernels.module(name).refuses(case) else pays(case)
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
        positions: bool, whether the call is given positions.

    Returns:
        `Choice`.

    Example:

    ```python
    import keras_attention as ka

    layer = ka.attention.MultiHeadAttention(8, 64, mask=ka.masks.Window(128))
    assert ka.attention.explain(layer, 4096).kernel == "banded"
    print(ka.attention.explain(layer, 100))  # dense: 100 queries and 100 keys are few
    ```
    """
    if lacking := [name for name in ("score", "normalizer", "mask") if not hasattr(layer, name)]:
        raise ValueError(
            f"{layer!r} has no {lacking[0]}, of which the choice of a kernel depends: expected an "
            "attention layer such as MultiHeadAttention; of a block, its `attention`."
        )
    normalizer = layer.normalizer
    if getattr(layer, "sink", False) or getattr(layer, "talking_heads", False):
        normalizer = normalizers.Normalizer()  # what is around it makes it one of its own
    case = Case(
        query_length,
        query_length if key_length is None else key_length,
        layer.score,
        normalizer,
        masking.structure(layer, use_causal_mask),
        positions=positions,
        biased="bias" in getattr(getattr(layer, "position", None), "roles", ()),
        weights=return_attention_scores,
        dropout=bool(training and layer.dropout),
    )
    return choose(case, None if return_attention_scores else getattr(layer, "kernel", None))


def _banded_pays(case):
    reach = case.mask.reach()
    seen = reach.left + reach.right + 1 + len(reach.tokens)
    seen += kernels.banded.rows_at_once(reach)
    if seen > case.key_length / 2:
        return None
    return f"a slice of the queries sees {seen} of {case.key_length} keys"


def _fused_pays(case):
    return f"{keras.backend.backend()} has an attention of its own"


def _chunked_pays(case):
    least = LONG_AHEAD if _looks_back(case) else LONG
    if scope.current(scope.Export) or case.key_length < least:
        return None
    rows = kernels.chunked.rows_at_once(case.key_length)
    if case.query_length <= rows:
        return None
    return f"{case.key_length} keys are many; memory stays that of {rows} queries"


def _looks_back(case):
    """Whether about half of the square, or more, is left out by who looks ahead how far."""
    if case.mask is None or case.positions or case.mask.global_tokens():
        return False
    ahead = case.mask.band()[1]
    return ahead is not None and ahead <= case.key_length / 8


_PAYS = {"banded": _banded_pays, "fused": _fused_pays, "chunked": _chunked_pays}


def _why_dense(case):
    reason = kernels.slicing.refuses(case)
    return reason or f"{case.query_length} queries and {case.key_length} keys are few"
