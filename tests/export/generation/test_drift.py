import dataclasses

import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export.generation import drift
from keras_attention.export.generation.settings import GenerationPlan
from keras_attention.export.quantization import FLOAT32, INT4_WEIGHTS, INT8_WEIGHTS
from tests.export.conftest import TEXTS
from tests.export.generation.test_settings import make


def test_a_float_file_does_not_drift(written):
    result = written[1].drift
    assert result.tokens == (2, 2, 2, 2, 1, 1)  # padding does not count
    assert result.agreement == 1.0 and max(result.max_abs_error) < 1e-4


@pytest.mark.slow
def test_a_file_of_another_model_drifts(translated, decoders, translator):
    """Fixed shapes: rows are filled up, and more rows than the file takes come in turns."""
    random = np.random.default_rng(0)
    examples = {
        "source_ids": random.integers(1, 19, (3, 6), dtype="int32"),
        "target_ids": random.integers(1, 23, (3, 4), dtype="int32"),
    }
    decoder = decoders["translator"]
    generation = make(decoder, start_token_id=1, max_length=7)
    generation = dataclasses.replace(generation, examples=(examples,))
    same = drift.compare_texts(translated[0], generation)
    assert same.tokens == (3, 3, 3, 3) and same.agreement == 1.0
    (weight,) = (w for w in translator.weights if w.path.endswith("logits/kernel"))
    before = weight.numpy()
    try:
        weight.assign(-before)
        other = drift.compare_texts(translated[0], generation)
    finally:
        weight.assign(before)
    assert other.agreement < 0.5 and min(other.max_abs_error) > 0.1


def test_too_much_of_it_is_refused(monkeypatch):
    result = export.Drift((4, 4), (1.0, 0.5), (0.1, 0.2))
    monkeypatch.setattr(drift, "compare_texts", lambda path, generation: result)
    generation = GenerationPlan(None, {}, 0, 0, (), (), examples=(TEXTS,))
    assert drift.measure_drift("m.tflite", generation, FLOAT32) is result
    with pytest.raises(
        export.ExportError, match="the same next token in 0.750 of the positions. Required is 0.9"
    ):
        drift.measure_drift("m.tflite", generation, INT8_WEIGHTS)
    with pytest.raises(
        export.ExportError, match=r'Required is \S+ Use quantization="int8_weights"'
    ):
        drift.measure_drift("m.tflite", generation, INT4_WEIGHTS)
    assert drift.measure_drift("m.tflite", None, FLOAT32) is None
    without = dataclasses.replace(generation, examples=())
    assert drift.measure_drift("m.tflite", without, FLOAT32) is None


def test_one_different_token_is_accepted(monkeypatch):
    generation = GenerationPlan(None, {}, 0, 0, (), (), examples=(TEXTS,))
    cases = (
        ((2, 2, 2), (1.0, 0.5, 1.0), False),
        ((2,), (0.0,), True),
        ((6, 6), (1.0, 4 / 6), True),  # two of twelve, in floats a little less
    )
    for tokens, shares, refused in cases:
        result = export.Drift(tokens, shares, (0.1,) * len(tokens))
        monkeypatch.setattr(drift, "compare_texts", lambda path, generation, result=result: result)
        if refused:
            with pytest.raises(export.ExportError, match=r"the same next token in 0\.(000|833)"):
                drift.measure_drift("m.tflite", generation, INT8_WEIGHTS)
        else:
            assert drift.measure_drift("m.tflite", generation, INT8_WEIGHTS) is result


def test_a_drift_is_one_line_of_the_report():
    line = str(export.Drift((4, 2), (1.0, 0.5), (0.1, 0.25)))
    assert "on 6 tokens" in line and "agreement 0.8333, at worst 0.5000 at position 1" in line
    assert line.endswith("max abs error 2.5e-01")
