import numpy as np
import pytest

from keras_attention.export import ExportError, compare
from keras_attention.export.cases import Case

IDS = np.array([[4, 5, 0]], "int32")
LOGITS = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]], "float32")


def measure(outputs, expected=LOGITS):
    case = Case({"ids": IDS}, {"logits": expected})
    (parity,) = compare.measure(case, {"logits": outputs}, signature="f", runtime="R")
    return case, parity


def test_equal_outputs_agree_wholly():
    _, parity = measure(LOGITS.copy())
    assert parity.max_abs_error == 0 and parity.argmax_agreement == 1
    assert parity.batch == "ids (1, 3)"


def test_the_largest_error_counts():
    _, parity = measure(LOGITS + np.array([0.01, -0.02], "float32"))
    assert parity.max_abs_error == pytest.approx(0.02)


def test_agreement_leaves_padding_out():
    _, parity = measure(LOGITS * np.array([1, 1, -1], "float32")[None, :, None])
    assert parity.argmax_agreement == 1
    _, parity = measure(LOGITS * np.array([1, -1, 1], "float32")[None, :, None])
    assert parity.argmax_agreement == 0.5


def test_infinities_in_the_same_place_are_equal():
    infinite = np.where(LOGITS > 0, LOGITS, -np.inf)
    assert measure(infinite, infinite)[1].max_abs_error == 0
    assert measure(LOGITS, infinite)[1].max_abs_error == np.inf


@pytest.mark.parametrize(
    "outputs, message",
    [
        (np.full_like(LOGITS, np.nan), "NaN in 'logits' from R for ids"),
        (LOGITS[:, :2], r"Wrong shape of 'logits' from R .*\(1, 2, 2\), not \(1, 3, 2\)"),
    ],
)
def test_what_cannot_be_compared_is_refused(outputs, message):
    with pytest.raises(ExportError, match=message):
        measure(outputs)


def test_a_missing_output_is_refused():
    with pytest.raises(ExportError, match="No output 'logits' from R .* the file gives scores"):
        compare.measure(Case({}, {"logits": LOGITS}), {"scores": 1}, signature="f", runtime="R")


def test_tolerance_grows_with_large_outputs_only():
    case, parity = measure(LOGITS + np.float32(0.015))
    compare.check(case, [parity], tolerance=0.02)
    with pytest.raises(ExportError, match="'logits' from R at .* is off by 1.50e-02; 1e-02"):
        compare.check(case, [parity], tolerance=0.01)
    case, parity = measure(100 * LOGITS + np.float32(0.5), 100 * LOGITS)
    compare.check(case, [parity], tolerance=0.01)


def test_an_infinite_error_is_above_any_tolerance():
    case, parity = measure(LOGITS, np.where(LOGITS > 0, LOGITS, -np.inf))
    with pytest.raises(ExportError, match="is off by inf"):
        compare.check(case, [parity], tolerance=1.0)


def test_too_little_agreement_is_refused():
    case, parity = measure(-LOGITS)
    with pytest.raises(ExportError, match="agrees in 0.000 of the positions; 0.8 is the least"):
        compare.check(case, [parity], agreement=0.8)


def test_what_a_decoder_keeps_is_one_entry():
    """With its largest error, on the scale of its largest number; agreement says nothing of it."""
    kept = {"a_key": np.full((1, 3, 2), 200.0), "b_key": np.zeros((1, 3, 2))}
    case = Case({"ids": IDS, **kept}, {"logits": LOGITS, **kept}, cache=("a_key", "b_key"))
    given = {"logits": LOGITS, "a_key": kept["a_key"] + 0.01, "b_key": kept["b_key"]}
    logits, cache = compare.measure(case, given, signature="step", runtime="R")
    assert (cache.output, cache.argmax_agreement) == ("cache", None)
    assert cache.max_abs_error == pytest.approx(0.01) and cache.batch == "ids (1, 3)"
    compare.check(case, [logits, cache], tolerance=1e-4)
    with pytest.raises(ExportError, match="'cache' from R at ids .* is off by 1.00e-02"):
        compare.check(case, [cache], tolerance=1e-5)
    with pytest.raises(ExportError, match="No output 'b_key' from R"):
        del given["b_key"]
        compare.measure(case, given, signature="step", runtime="R")


def test_a_judge_speaks_for_outputs_that_may_differ():
    case = Case({"ids": IDS}, {}, judge=lambda outputs: {"ids": (0.5, outputs["ids"].mean())})
    (parity,) = compare.measure(case, {"ids": np.ones(3)}, signature="generate", runtime="R")
    assert (parity.max_abs_error, parity.argmax_agreement) == (0.5, 1.0)
    with pytest.raises(ExportError, match="is off by 5.00e-01; 1e-04 is allowed"):
        compare.check(case, [parity], tolerance=1e-4)
