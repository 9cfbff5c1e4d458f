import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import ExportError
from keras_attention.export.checks.cases import Case
from keras_attention.export.checks.parity import (
    check_parity,
    is_vector,
    list_warnings,
    measure_parity,
)
from keras_attention.export.checks.report import Parity
from keras_attention.export.quantization import FLOAT16, INT8
from tests.export.conftest import make_labeler

IDS = np.array([[4, 5, 0]], "int32")
LOGITS = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]], "float32")


def measure(outputs, expected=LOGITS):
    case = Case({"ids": IDS}, {"logits": expected})
    (parity,) = measure_parity(case, {"logits": outputs}, signature="f", runtime="R")
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
        (
            LOGITS[:, :2],
            r"Wrong shape of 'logits' from R .*\(1, 2, 2\). The model returns \(1, 3, 2\)",
        ),
    ],
)
def test_parity_refuses_nan_and_outputs_of_wrong_shape(outputs, message):
    with pytest.raises(ExportError, match=message):
        measure(outputs)


def test_a_missing_output_is_refused():
    with pytest.raises(ExportError, match="No output 'logits' from R .* The file returns scores"):
        measure_parity(Case({}, {"logits": LOGITS}), {"scores": 1}, signature="f", runtime="R")


def test_tolerance_grows_with_large_outputs_only():
    case, parity = measure(LOGITS + np.float32(0.015))
    check_parity(case, [parity], tolerance=0.02)
    with pytest.raises(
        ExportError, match="'logits' from R at .* is off by 1.50e-02. Allowed is 1e-02"
    ):
        check_parity(case, [parity], tolerance=0.01)
    case, parity = measure(100 * LOGITS + np.float32(0.5), 100 * LOGITS)
    check_parity(case, [parity], tolerance=0.01)


def test_an_infinite_error_is_above_any_tolerance():
    case, parity = measure(LOGITS, np.where(LOGITS > 0, LOGITS, -np.inf))
    with pytest.raises(ExportError, match="is off by inf"):
        check_parity(case, [parity], tolerance=1.0)


def test_too_little_agreement_is_refused():
    case, parity = measure(-LOGITS)
    with pytest.raises(ExportError, match="agrees in 0.000 of the positions. Required is 0.8"):
        check_parity(case, [parity], agreement=0.8)


def test_parity_reports_the_decoder_cache_as_one_entry():
    """Check the largest error, relative to the largest number."""
    stored = {"a_key": np.full((1, 3, 2), 200.0), "b_key": np.zeros((1, 3, 2))}
    case = Case({"ids": IDS, **stored}, {"logits": LOGITS, **stored}, cache=("a_key", "b_key"))
    inputs = {"logits": LOGITS, "a_key": stored["a_key"] + 0.01, "b_key": stored["b_key"]}
    logits, cache = measure_parity(case, inputs, signature="step", runtime="R")
    assert (cache.output, cache.argmax_agreement) == ("cache", None)
    assert cache.max_abs_error == pytest.approx(0.01) and cache.batch == "ids (1, 3)"
    check_parity(case, [logits, cache], tolerance=1e-4)
    with pytest.raises(ExportError, match="'cache' from R at ids .* is off by 1.00e-02"):
        check_parity(case, [cache], tolerance=1e-5)
    with pytest.raises(ExportError, match="No output 'b_key' from R"):
        del inputs["b_key"]
        measure_parity(case, inputs, signature="step", runtime="R")


def test_a_case_scores_outputs_that_may_differ():
    case = Case({"ids": IDS}, {}, score=lambda outputs: {"ids": (0.5, outputs["ids"].mean())})
    (parity,) = measure_parity(case, {"ids": np.ones(3)}, signature="generate", runtime="R")
    assert (parity.max_abs_error, parity.argmax_agreement) == (0.5, 1.0)
    with pytest.raises(ExportError, match="is off by 5.00e-01. Allowed is 1e-04"):
        check_parity(case, [parity], tolerance=1e-4)


VECTORS = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")


def measure_named(name, outputs, expected, inputs=None):
    case = Case(inputs or {}, {name: expected}, real=True)
    (parity,) = measure_parity(case, {name: outputs}, signature="f", runtime="R")
    return case, parity


@pytest.mark.parametrize(
    "name, size, expected",
    [
        ("logits", 100, False),
        ("class_probabilities", 100, False),
        ("start_logits", 9, False),
        ("embedding", 5, True),
        ("layer_normalization_3", 5, True),
        ("last_hidden_state", 5, True),
        ("label_embeddings", 5, True),
        ("boxes", 4, True),
        ("classes", 100, False),
        ("dense_3", 63, False),
        ("dense_3", 64, True),
    ],
)
def test_names_and_sizes_decide_the_kind_of_an_output(name, size, expected):
    assert is_vector(name, np.full((2, size), -1.0)) == expected


def test_probabilities_are_not_vectors():
    shares = np.random.default_rng(0).dirichlet(np.ones(100), size=3)
    assert not is_vector("dense", shares)
    assert is_vector("dense", shares - 0.1)


def test_vectors_are_judged_by_their_direction():
    """Neither the largest entry nor the length of a vector matters."""
    turned = 2 * VECTORS + 0.05
    _, parity = measure_named("embedding", turned, VECTORS)
    assert parity.argmax_agreement is None
    a, b = turned.reshape(-1, 5), VECTORS.reshape(-1, 5)
    by_hand = [x @ y / np.sqrt(x @ x) / np.sqrt(y @ y) for x, y in zip(a, b, strict=True)]
    assert parity.cosine == pytest.approx(np.mean(by_hand), abs=1e-6)
    _, parity = measure_named("logits", turned, VECTORS)
    assert parity.cosine is None and parity.argmax_agreement is not None


def test_cosines_leave_padding_out():
    wrong = VECTORS.copy()
    wrong[0, 2] *= -1
    ids = np.array([[1, 2, 0], [3, 4, 5]], "int32")
    assert measure_named("hidden", wrong, VECTORS, {"ids": ids})[1].cosine == pytest.approx(1)
    assert measure_named("hidden", wrong, VECTORS)[1].cosine == pytest.approx(1 - 2 / 6)


def test_zero_vectors_equal_only_zero_vectors():
    zeros = np.zeros_like(VECTORS)
    assert measure_named("hidden", zeros, zeros)[1].cosine == 1
    assert measure_named("hidden", VECTORS, zeros)[1].cosine == 0


def test_vectors_of_another_direction_are_refused():
    case, parity = measure_named("embedding", -VECTORS, VECTORS)
    with pytest.raises(ExportError, match=r"'embedding' from R .* cosine of -1.000 .* 0.95. Do"):
        check_parity(case, [parity], agreement=0.8, cosine=0.95, advice=" Do otherwise.")
    check_parity(case, [parity], agreement=0.8)


BATCHES = [{"token_ids": np.array([[3, 4, 5, 0]])}, {"token_ids": np.ones((2, 9), "int32")}]


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.tflite"])
def test_files_equal_their_model(exported, labeler, name):
    folder, *_ = exported
    parity = export.verify(labeler, folder / name, BATCHES)
    assert list(parity) == ["logits"]
    assert parity["logits"].max_abs_error < 1e-5 and parity["logits"].argmax_agreement == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["saved_model", "model.tflite"])
def test_files_differ_from_another_model(exported, name):
    folder, *_ = exported
    keras.utils.set_random_seed(1)
    other = make_labeler()
    with pytest.raises(export.ExportError, match="'logits' from .* is off by"):
        export.verify(other, folder / name, BATCHES)
    parity = export.verify(other, folder / name, BATCHES, tolerance=100.0)
    singles = [export.verify(other, folder / name, [b], tolerance=100.0)["logits"] for b in BATCHES]
    assert parity["logits"].max_abs_error == max(p.max_abs_error for p in singles)
    assert parity["logits"].argmax_agreement == min(p.argmax_agreement for p in singles)


@pytest.mark.slow
def test_verify_default_tolerance_follows_the_weight_precision(labeler, tmp_path):
    export.to_litert(labeler, tmp_path / "m.tflite", quantization="float16")
    error = export.verify(labeler, tmp_path / "m.tflite", BATCHES)["logits"].max_abs_error
    assert 0 < error < 1e-2
    with pytest.raises(export.ExportError, match="is off by"):
        export.verify(labeler, tmp_path / "m.tflite", BATCHES, tolerance=error / 100)


def test_other_inputs_are_refused(exported, labeler):
    folder, *_ = exported
    with pytest.raises(ValueError, match="inputs= has a batch with words"):
        export.verify(labeler, folder / "model.tflite", {"words": [[1]]})
    with pytest.raises(ValueError, match="is not a model"):
        export.verify(labeler, folder / "manifest.json", BATCHES)
    images = keras.Input((None,), dtype="int32", name="images")
    other = keras.Model(images, keras.layers.Embedding(9, 3, name="logits")(images))
    with pytest.raises(ValueError, match="takes the inputs token_ids. It received images"):
        export.verify(other, folder / "model.tflite", [[[1]]])


def test_warnings_name_their_kind_of_inputs():
    measured = [Parity("f", "embedding", "LiteRT", "x (1, 2)", 0.1, None, 0.5)]
    (made_up,) = list_warnings(measured, INT8)
    (inputs,) = list_warnings(measured, INT8, has_examples=True)
    assert "of only 0.500 with the model's. Pass examples= to check" in made_up
    assert "of only 0.500 with the model's. This was measured on cut and padded" in inputs
    assert not list_warnings(measured, FLOAT16)
