"""Quantized files: their size, their accuracy, and refused arguments."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import backend, convert, converter, endpoint
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.gpu import adapt_to_gpu
from keras_attention.export.quantization import (
    FLOAT16,
    FLOAT32,
    INT4_WEIGHTS,
    INT8,
    INT8_WEIGHTS,
    QUANTIZATIONS,
    find_quantization,
    get_quantization,
)


def raise_bar(monkeypatch, **bars):
    """Asks more of full int8 than any file reaches."""
    monkeypatch.setitem(QUANTIZATIONS, "int8", dataclasses.replace(INT8, **bars))


def test_quantizations_have_names():
    names = (None, "float16", "int8_weights", "int4_weights", "int8")
    expected = [FLOAT32, FLOAT16, INT8_WEIGHTS, INT4_WEIGHTS, INT8]
    assert [get_quantization(name) for name in names] == expected
    with pytest.raises(
        ValueError, match="quantization='int4' is unknown. Use one of None, 'float16'"
    ):
        get_quantization("int4")


@pytest.mark.parametrize(
    "dtypes, expected",
    [
        ({"float32", "int32"}, FLOAT32),
        ({"float32", "float16"}, FLOAT16),
        ({"float32", "int8"}, INT8_WEIGHTS),
        ({"float32", "float16", "int8", "int4"}, INT4_WEIGHTS),
    ],
)
def test_constants_show_the_quantization_of_a_file(dtypes, expected):
    assert find_quantization(dtypes) is expected


def test_every_quantization_has_a_limit():
    """Files are held to a tolerance, or to an agreement and a cosine on given examples."""
    for one in QUANTIZATIONS.values():
        assert (one.tolerance is None) != (one.agreement is None)
        assert (one.agreement is None) == (one.cosine is None)
        assert one.has_scales == (one.agreement is not None)


@pytest.fixture(scope="module")
def classifier():
    """Return a trained classifier that is wide enough for its weights to dominate the size."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(500, 128)(ids)
    x = keras.layers.Dense(256, "relu")(x)
    model = keras.Model(ids, keras.layers.Dense(4, name="logits")(x))
    x, y = data()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    model.fit(x, y, epochs=8, batch_size=32, verbose=0)
    return model


def data():
    x = np.random.default_rng(0).integers(1, 500, (256, 9))
    return x, x % 4


@pytest.mark.parametrize(
    "quantization, ratio",
    [("float16", 0.5), ("int8_weights", 0.25), ("int4_weights", 0.19), ("int8", 0.25)],
)
def test_files_shrink_and_still_decide_alike(
    classifier, quantization, ratio, tmp_path, in_this_process
):
    x, _ = data()
    report = export.to_litert(
        classifier,
        tmp_path / "m.tflite",
        quantization=quantization,
        calibration=[x[:64]] if quantization == "int8" else None,
        examples=x[:32],
    )
    assert report.size < 1.1 * ratio * report.weights_bytes + 16_000
    assert report.argmax_agreement > 0.95 and not report.warnings
    assert report.max_abs_error < (1e-2 if quantization == "float16" else 2.0)
    assert report.signatures[0].inputs[0].dtype == "int32"
    assert report.signatures[0].outputs[0].dtype == "float32"
    kinds = {tensor.dtype for tensor in flatbuffer.read_graph(tmp_path / "m.tflite").constants}
    assert quantization.removesuffix("_weights") in kinds


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["int8_weights", "int8"])
def test_one_scale_per_matrix_runs_in_older_runtimes(
    classifier, quantization, tmp_path, in_this_process
):
    x, _ = data()
    inputs = {"quantization": quantization, "examples": x[:32]}
    if quantization == "int8":
        inputs["calibration"] = [x[:64]]
    kinds = {}
    for per_channel in (True, False):
        path = tmp_path / f"{per_channel}.tflite"
        kinds[per_channel] = export.to_litert(classifier, path, per_channel=per_channel, **inputs)
        scales = scales_of_products(path)
        assert scales == ({256, 4} if per_channel else {1})
    assert kinds[False].argmax_agreement > 0.95
    assert kinds[False].size < kinds[True].size
    if quantization == "int8_weights":
        oldest = {key: report.minimum_runtime["tensorflow_lite"] for key, report in kinds.items()}
        assert oldest[True] == "2.17.0"
        assert [int(part) for part in oldest[False].split(".")] < [2, 14]


def scales_of_products(path):
    """Count the scales of the weights of dense layers."""
    details = export.load(path).interpreter.get_tensor_details()
    shapes = ([256, 128], [4, 256])
    weights = [x for x in details if x["shape"].tolist() in shapes and x["dtype"] == np.int8]
    assert len(weights) >= 2
    return {len(x["quantization_parameters"]["scales"]) for x in weights}


@pytest.mark.parametrize("quantization", [None, "float16", "int4_weights"])
def test_per_channel_needs_int8(classifier, quantization, tmp_path):
    with pytest.raises(ValueError, match="per_channel=False needs int8 weights"):
        export.to_litert(
            classifier, tmp_path / "m.tflite", quantization=quantization, per_channel=False
        )


@pytest.mark.slow
def test_float_inputs_stay_float_in_int8(tmp_path, in_this_process):
    inputs = keras.Input((8, 8, 1), name="images")
    x = keras.layers.Flatten()(keras.layers.Conv2D(4, 3)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))
    images = np.random.default_rng(0).random((8, 8, 8, 1))
    report = export.to_litert(
        model,
        tmp_path / "m.tflite",
        quantization="int8",
        calibration=[images],
        batch_size=1,
    )
    assert report.signatures[0].inputs[0] == export.Tensor("images", (1, 8, 8, 1), "float32")
    assert report.signatures[0].outputs[0].dtype == "float32"
    assert report.ops["QUANTIZE"] >= 1


@pytest.mark.slow
def test_an_int8_file_that_disagrees_on_examples_is_refused(
    classifier, tmp_path, monkeypatch, in_this_process
):
    raise_bar(monkeypatch, agreement=1.01)
    x, _ = data()
    settings = {"quantization": "int8", "calibration": [x[:8]]}
    with pytest.raises(export.ExportError, match="decides differently from the model"):
        export.to_litert(classifier, tmp_path / "m.tflite", examples=x[:8], **settings)
    report = export.to_litert(classifier, tmp_path / "m.tflite", **settings)
    assert any("Pass examples= to check" in warning for warning in report.warnings)


@pytest.mark.slow
def test_an_int4_file_that_disagrees_on_examples_is_refused(classifier, tmp_path, monkeypatch):
    harder = dataclasses.replace(INT4_WEIGHTS, agreement=1.01)
    monkeypatch.setitem(QUANTIZATIONS, "int4_weights", harder)
    settings = {"quantization": "int4_weights", "examples": data()[0][:8]}
    message = r'Required is 1.01. Use quantization="int8_weights", which is more accurate.'
    with pytest.raises(export.ExportError, match=message):
        export.to_litert(classifier, tmp_path / "m.tflite", **settings)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def encoder():
    """Ids to vectors, with many entries that are almost as large as the largest."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(500, 32, name="words")(ids)
    x = keras.layers.GlobalAveragePooling1D()(x)
    steep = keras.initializers.RandomNormal(stddev=300.0)
    x = keras.layers.Dense(64, "softsign", kernel_initializer=steep, name="embedding")(x)
    return keras.Model(ids, x)


@pytest.mark.slow
def test_vectors_are_judged_by_their_cosine(encoder, tmp_path, in_this_process):
    """Show that the largest entry would refuse this good file."""
    x, path = data()[0][:32], tmp_path / "m.tflite"
    report = export.to_litert(encoder, path, quantization="int8", calibration=[x], examples=x)
    assert report.argmax_agreement is None and 0.95 < report.cosine < 1 and not report.warnings
    assert f"{report.cosine:.4f}" in str(report)
    expected, result = encoder(x).numpy(), export.load(path)({"token_ids": x})["embedding"]
    same = np.argmax(expected, -1) == np.argmax(result, -1)
    assert same.mean() < INT8.agreement
    (parity,) = export.verify(encoder, path, x).values()
    lengths = np.linalg.norm(expected, axis=-1) * np.linalg.norm(result, axis=-1)
    assert parity.cosine == pytest.approx(((expected * result).sum(-1) / lengths).mean(), abs=1e-5)


@pytest.mark.slow
def test_int8_that_turns_vectors_is_refused_with_advice(
    encoder, tmp_path, monkeypatch, in_this_process
):
    raise_bar(monkeypatch, cosine=1.01)
    x, path = data()[0][:32], tmp_path / "m.tflite"
    inputs = {"quantization": "int8", "calibration": [x]}
    way_out = 'Use quantization="int8_weights"'
    with pytest.raises(
        export.ExportError, match=rf"other vectors .* cosine of \d\S+ with .* {way_out}"
    ):
        export.to_litert(encoder, path, examples=x, **inputs)
    assert not list(tmp_path.iterdir())
    (warning,) = export.to_litert(encoder, path, **inputs).warnings
    assert "gives vectors of a cosine of only " in warning and way_out in warning
    report = export.to_litert(encoder, path, quantization="int8_weights", examples=x)
    assert report.cosine > 0.99 and not report.warnings


@pytest.mark.slow
def test_a_converter_that_crashes_is_an_error(tmp_path, new_process):
    """Finite calibration, finite outputs, and a variance that overflows on the way to them."""
    inputs = keras.Input((4,), name="x")
    x = keras.layers.LayerNormalization()(keras.layers.Dense(8)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))
    calibration = [np.full((1, 4), size) for size in (1.0, 1e30)]
    with pytest.raises(export.ExportError, match=r"converter crashed \(SIG\w+\) .* a number insi"):
        export.to_litert(
            model,
            tmp_path / "deep" / "m.tflite",
            quantization="int8",
            calibration=calibration,
            batch_size=1,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_converter_process_gives_the_same_file(tmp_path, classifier):
    x, _ = data()
    samples = [{"token_ids": x[i : i + 1].astype("int32")} for i in range(4)]
    point = endpoint.make_endpoint(classifier, 1, 9)
    endpoint.save_endpoints(classifier, [point], tmp_path / "m", -100.0)
    with backend.hide_stderr():
        local = converter.convert_folder(tmp_path / "m", [point.name], "int8", samples)
    inputs = {"quantization": INT8, "calibration": samples}
    result = convert.convert_saved_model(tmp_path / "m", [point], classifier, **inputs)
    assert result == adapt_to_gpu(local)


REFUSES = """
import json, pathlib, sys
said = {"ops": [["MatrixInverse", "labeler_1/embedding_1/Inverse"]], "reason": ""}
(pathlib.Path(sys.argv[1]) / "error.json").write_text(json.dumps(said))
"""


@pytest.mark.parametrize(
    "script, message",
    [
        (REFUSES, r"no built-in op for MatrixInverse in layer 'embedding' \(Embedding\)"),
        ("raise OSError('no space left')", "converter could not run: OSError: no space left"),
        ("import os; os.kill(os.getpid(), 9)", "converter was killed .* memory ran out"),
    ],
)
def test_export_error_states_why_converter_failed(labeler, tmp_path, monkeypatch, script, message):
    monkeypatch.setattr(convert, "_SCRIPT", tmp_path / "script.py")
    (tmp_path / "script.py").write_text(script)
    inputs = {"quantization": INT8, "calibration": []}
    with pytest.raises(export.ExportError, match=message):
        convert.convert_saved_model(tmp_path, [endpoint.make_endpoint(labeler)], labeler, **inputs)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_calibration_must_be_finite(value, tmp_path):
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(3, name="logits")(inputs))
    calibration = [np.ones((2, 4)), np.full((2, 4), value)]
    with pytest.raises(ValueError, match="calibration= has NaN or inf.*'x' in batch 1. Expected"):
        export.to_litert(model, tmp_path / "m.tflite", quantization="int8", calibration=calibration)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "ids, message",
    [
        (500, r"model cannot run calibration= \(token_ids \(1, 9\)\): .*500 is not in"),
        (2**40, "calibration= has numbers from 1099511627776 to 1099511627776 for the input"),
        (0.5, "calibration= has numbers with a fraction for the input 'token_ids'. Expected"),
        (np.nan, "calibration= has NaN or infinite numbers for the input 'token_ids'. Expected"),
    ],
)
def test_calibration_that_the_model_refuses_is_an_error(classifier, ids, message, tmp_path):
    calibration = [np.full((1, 9), ids)]
    inputs = {"quantization": "int8", "calibration": calibration}
    with pytest.raises(ValueError, match=message):
        export.to_litert(classifier, tmp_path / "m.tflite", **inputs)
    assert not list(tmp_path.iterdir())


def test_a_model_that_overflows_on_calibration_is_refused(tmp_path):
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(3, "exponential", name="y")(inputs))
    arguments = {"quantization": "int8", "calibration": [np.full((1, 4), 1e30)]}
    model.layers[-1].kernel.assign(np.ones((4, 3)))
    with pytest.raises(ValueError, match="returns infinite numbers in 'y' for calibration="):
        export.to_litert(model, tmp_path / "m.tflite", **arguments)


@pytest.mark.slow
def test_a_full_int8_file_of_floats_is_refused(classifier, tmp_path, monkeypatch):
    """Simulate a conversion with ranges that are NaN."""
    x, _ = data()
    weights_only = converter.convert_folder

    def run(folder, signatures, model, samples, per_channel):
        return weights_only(folder, signatures, "int8_weights")

    monkeypatch.setattr(convert, "_convert_in_process", run)
    inputs = {"quantization": "int8", "calibration": [x[:8]]}
    with pytest.raises(export.ExportError, match="no range for the activations, and left them in"):
        export.to_litert(classifier, tmp_path / "m.tflite", **inputs)
    assert not list(tmp_path.iterdir())
