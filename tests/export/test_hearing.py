"""A file that hears piece by piece equals the stream of the Keras model."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.checks.cases import run_model
from keras_attention.export.hearing import INDEX, LABELS, LAST, LOGITS, make_hearing
from tests.generation import test_speech_stream
from tests.generation.test_speech_stream import make

pytestmark = pytest.mark.tensorflow
random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def own_weights(monkeypatch):
    """Draw the weights of `make` from a generator that the other module does not use."""
    monkeypatch.setattr(test_speech_stream, "random", np.random.default_rng(0))


def hear_all(start, hear, sound, name, piece, step):
    """Read a recording in pieces, as an app does, and return all labels and logits."""
    state, labels, logits, begin = start({"rows": np.array(1, "int32")}), [], [], 0
    overlap = piece - step
    while len(sound) - begin > overlap:
        state = hear({name: sound[None, begin : begin + piece], **state})
        labels += [int(label) for label in state.pop(LABELS)[0] if label]
        logits.append(state.pop(LOGITS)[0])
        begin += step
    return labels, np.concatenate(logits)


def stream_all(model, sound):
    stream = ka.generation.SpeechStream(model, 64)
    labels = stream.hear(sound) + stream.finish()
    logits = [stream.compute_logits(sound), stream.compute_logits(sound[:0], last=True)]
    return labels, np.concatenate(logits)


@pytest.mark.slow
def test_pieces_of_the_model_equal_its_stream():
    """Check the functions before they are exported: two whole chunks and a part of one."""
    model = make(chunk_size=2, num_layers=1)
    exportable = make_hearing(model, ka.export.Hearing(16), batch_size=1)
    start, hear = exportable.endpoints
    assert (start.name, hear.name) == ("start", "hear")
    assert exportable.describe_generation() == {"piece": 8, "step": 8, "max_length": 16}
    features = random.normal(size=(21, 12)).astype("float32")
    functions = [lambda x, one=one: run_model(one, x) for one in (start, hear)]
    labels, logits = hear_all(*functions, features, "features", 8, 8)
    expected = stream_all(model, features)
    np.testing.assert_allclose(logits, expected[1], atol=1e-5)
    assert labels == expected[0] != []
    (first, *_), pieces = (one.cases for one in exportable.checked)
    assert set(pieces[1].inputs) == {"features", *first.outputs}
    assert pieces[2].inputs[INDEX] == 4 and pieces[2].inputs[LAST].shape == (1,)
    assert not any(value.any() for value in first.outputs.values())


def test_models_without_chunks_are_refused():
    with pytest.raises(ValueError, match="Build it with chunk_size="):
        make_hearing(make(chunk_size=None, num_layers=1), ka.export.Hearing())
    with pytest.raises(ValueError, match=r"Hearing.*max_length=0"):
        ka.export.Hearing(0)


@pytest.mark.slow
def test_the_file_of_a_task_hears_waveforms(tmp_path):
    model = make({"input": "waveform", "sampling_rate": 2000}, kernel_size=5, num_layers=1)
    model.get_layer("feature_norm").set_weights([np.full(12, 17.0), np.full(12, 1.0)])
    preprocessor = ka.data.SpeechPreprocessor("abcdefgh", sampling_rate=2000)
    task, path = ka.tasks.SpeechRecognizer(model, preprocessor), tmp_path / "live.tflite"
    report = task.export_live(path, max_length=64)
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    settings = manifest["files"]["live.tflite"]["generation"]
    # 3 vectors of 4 frames of 10 ms, and the rest of the last frame of 25 ms
    assert settings == report.generation == {"piece": 270, "step": 240, "max_length": 64}
    assert manifest["sampling_rate"] == 2000 and report.max_abs_error < 1e-3
    samples = random.normal(size=3000, scale=0.3).astype("float32")
    functions = [ka.export.load(path, name) for name in ("start", "hear")]
    labels, logits = hear_all(*functions, samples, "waveform", 270, 240)
    expected = stream_all(model, samples)
    np.testing.assert_allclose(logits, expected[1], atol=1e-4)
    assert labels == expected[0] != []
