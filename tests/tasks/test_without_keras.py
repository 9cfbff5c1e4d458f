"""LiteRT files of presets without Keras and TensorFlow, and when `predict` chooses them."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.sources import load_digits
from keras_attention.core import lazy
from keras_attention.tasks import folders
from keras_attention.tasks.folders import answers_alike, find_model_file
from keras_attention.training.scores.class_scores import score_labels, score_tags
from tests import costs
from tests.conftest import ROOT

PRESETS = ROOT / "saved_models"
# The command line in a new process, which prints its costs and its imports.
COMMAND = """
import resource, sys
from keras_attention.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
assert not {"keras", "tensorflow", "h5py"} & {*sys.modules}
used = resource.getrusage(resource.RUSAGE_SELF)
status = open("/proc/self/status").read()  # the peak there leaves out that of the parent
peak = int(status.split("VmHWM:")[1].split()[0])
print(used.ru_utime + used.ru_stime, peak / 1024, file=sys.stderr)
"""


def run_alone(*words):
    """Return the output, CPU seconds and megabytes of a command in a new process."""
    command = [sys.executable, "-c", COMMAND, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    seconds, megabytes = map(float, done.stderr.splitlines()[-1].split())
    return done.stdout, seconds, megabytes


@pytest.fixture
def sound(tmp_path):
    """Write a recording of noise."""
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "noise.wav", np.random.normal(0, 0.1, 8000), 8000)
    return tmp_path / "noise.wav"


@pytest.fixture
def pictures(tmp_path):
    """Write files of handwritten digits."""
    pixels = load_digits().test.pixels[:20]
    paths = [tmp_path / f"{k}.png" for k in range(len(pixels))]
    for path, picture in zip(paths, pixels, strict=True):
        keras.utils.save_img(path, picture * 255, scale=False)
    return paths


INPUTS = {
    "emotions": ["Thank you so much!", "--json"],
    "pos-tagger-en-ewt": ["The cat sat on the mat."],
    "dates": ["12. Mai 2021", "le 3 janvier 1999"],
    "multi30k-de-en": ["Ein Mann fährt Fahrrad."],
    "shakespeare": ["ROMEO:", "--seed", "3", "--max-new-tokens", "20"],
    "digits-speech": ["sound"],
    "digits-vit": ["pictures", "--top", "10"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_preset_gives_the_same_answers_quickly_without_keras(run, request, name):
    inputs = INPUTS[name]
    if inputs[0] in ("sound", "pictures"):
        made = request.getfixturevalue(inputs[0])
        inputs = [*(made if isinstance(made, list) else [made]), *inputs[1:]]
    words = ["predict", PRESETS / name, *inputs, "--with", "litert-int8"]
    out, seconds, megabytes = run_alone(*words)
    assert (0, out, "") == run(*words)
    assert seconds <= 1.5 * costs.measure_slowness() and megabytes <= 150


@pytest.mark.slow
def test_a_preset_is_scored_without_keras(run, tagger, corpus):
    words = ["evaluate", tagger, "--file", corpus / "test.conllu", "--with", "litert"]
    assert (0, run_alone(*words)[0], "") == run(*words)


def test_predict_runs_litert_where_it_answers_like_keras(run, tagger, monkeypatch):
    sentences = ["The cat sat.", "a big dog saw the house .", "red trees ran"]
    expected = run("predict", tagger, *sentences, "--with", "keras")
    monkeypatch.setattr(lazy.LazyModule, "__getattr__", None)  # tasks that need Keras fail
    assert expected[0] == 0 and answers_alike(tagger)
    assert run("predict", tagger, *sentences) == expected


@pytest.mark.slow
def test_picture_classes_equal_those_of_keras(run, pictures):
    preset = PRESETS / "digits-vit"
    expected = run("predict", preset, *pictures, "--with", "keras")
    assert answers_alike(preset)
    assert run_alone("predict", preset, *pictures)[0] == expected[1]


@pytest.fixture
def entry(tmp_path):
    """Return a function that writes a preset with changes of the entry of its LiteRT file."""

    def write(task="text_classifier", shape=(None, None), **changes):
        inputs = [{"name": "token_ids", "shape": list(shape), "dtype": "int32"}]
        signature = {"name": "serving_default", "inputs": inputs, "outputs": []}
        described = {"signatures": [signature], "parity": [{"max_abs_error": 1e-6}], **changes}
        content = {"task": task, "files": {"model.tflite": {"quantization": None, **described}}}
        content["writing"] = {"temperature": 1, "max_length": 8, "max_new_tokens": 8}
        content["writing"]["end_token_id"] = 2
        content |= {"maximum_length": 8}
        (tmp_path / "manifest.json").write_text(json.dumps(content))
        (tmp_path / "model.tflite").write_bytes(b"")
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        ({}, True),
        ({"shape": (None, 32)}, False),
        ({"shape": (1, None)}, False),
        ({"quantization": "float16"}, False),
        ({"parity": []}, False),
        ({"signatures": [{"name": "serving_default"}]}, False),
        ({"signatures": None}, False),
        ({"task": "causal_language_model"}, False),
    ],
)
def test_answers_alike_needs_a_compared_file_of_free_shapes(entry, changes, alike):
    folder = entry(**changes)
    assert answers_alike(folder) is alike
    (folder / "model.tflite").unlink()
    assert not answers_alike(folder)


def test_without_keras_the_first_file_is_of_litert(tmp_path, monkeypatch):
    (tmp_path / "model.keras").write_text("")
    (tmp_path / "model.int8.tflite").write_bytes(b"")
    assert find_model_file(tmp_path)[1].name == "model.keras"
    monkeypatch.setattr(folders, "has_keras", lambda: False)
    assert find_model_file(tmp_path)[1].name == "model.int8.tflite"
    (tmp_path / "model.int8.tflite").unlink()
    assert find_model_file(tmp_path)[1].name == "model.keras"


@pytest.mark.parametrize("missing", ["keras", "tensorflow"])
def test_error_explains_how_to_install_keras(monkeypatch, missing):
    def fail(name):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(lazy.importlib, "import_module", fail)
    with pytest.raises(
        ImportError, match=rf"{missing} is not installed: pip install '.*\[keras\]'"
    ):
        lazy.LazyModule("keras_attention.models").text_classifier(2, 2)
    with pytest.raises(ImportError, match="^This needs Keras"):
        lazy.LazyModule("keras").Model()
    with pytest.raises(ImportError, match="keras_attention.models needs Keras"):
        ka.__getattr__("models")  # the submodule is an attribute once it is imported


def test_scores_equal_those_of_the_metrics():
    labels = ["O", "B-a", "I-a", "B-b", "I-b"]
    f1, accuracy = ka.training.EntityF1(labels), ka.training.MaskedSparseCategoricalAccuracy()
    predicted, actual = np.random.randint(5, size=(2, 40, 7))
    f1.update_state(actual, np.eye(5)[predicted])
    accuracy.update_state(actual, np.eye(5)[predicted])
    names = [[[labels[i] for i in row] for row in rows] for rows in (predicted, actual)]
    macro = ka.training.EntityF1(labels, average="macro")
    macro.update_state(actual, np.eye(5)[predicted])
    scores = score_tags(labels, *names, entities=True)
    assert 0.1 < scores["entity_f1"] < scores["accuracy"] + 0.2
    assert scores["entity_f1"] == pytest.approx(float(f1.result()), abs=1e-6)
    assert scores["accuracy"] == pytest.approx(float(accuracy.result()), abs=1e-6)
    assert scores["macro_f1"] == pytest.approx(float(macro.result()), abs=1e-6)
    classes = ka.training.ClassF1(5)
    classes.update_state(actual, np.eye(5)[predicted])
    assert score_labels(labels, predicted.ravel(), actual.ravel())["macro_f1"] == pytest.approx(
        float(classes.result()), abs=1e-6
    )
    assert score_labels(labels, [], []) == {}
    assert score_tags(labels, [["O"]], [["O"]], entities=True)["entity_f1"] == 0.0
