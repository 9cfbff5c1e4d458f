"""The files of saved_models that have fixed shapes, in LiteRT.js, on real inputs."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.graphs import flatbuffer
from keras_attention.files import manifest
from tests.browser.test_builders import assert_equal
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

PRESETS = ROOT / "saved_models"
SENTENCES = [
    "The cat sat",
    "If you are in Zürich , do n't miss the old town !",
    "I could n't agree more .",
]
FIRST = 200  # characters of a play
TEXTS = {
    "multi30k-de-en": [
        "Zwei Hunde spielen im Schnee.",
        "Ein Mann fährt Fahrrad.",
        "Eine Frau kocht.",
    ],
    "dates": ["2035. gada 24. augusts", "12. Mai 1987"],
}


FILES = [
    "dates/model.int8.1x48.tflite",
    "digits-vit/model.1.tflite",
    "digits-vit/model.int8.1.tflite",
    "emotions/model.int8.1x32.tflite",
    "multi30k-de-en/model.int8.1x32.tflite",
    "pos-tagger-en-ewt/model.int8.1x128.tflite",
    "pos-tagger-en-ewt/model.int8.1x32.tflite",
    "shakespeare/model.int8.1x128.tflite",
]


def test_every_file_of_fixed_shapes_is_here():
    files = []
    for path in sorted(PRESETS.glob("*/*.tflite")):
        signatures = flatbuffer.read_graph(path).signatures
        if not any(None in tensor.shape for s in signatures for tensor in s.inputs):
            files.append(path.relative_to(PRESETS).as_posix())
    assert files == FILES


@pytest.mark.parametrize("name", FILES)
def test_the_browser_computes_what_the_interpreter_does(name, browser):
    path = PRESETS / name
    if path.parent.name in TEXTS:
        check_pairs(browser, path)
        return
    if path.parent.name == "shakespeare":
        check_writing(browser, path)
        return
    inputs = {"digits-vit": pictures, "emotions": comments}.get(path.parent.name, sentences)(path)
    # The pooled vector goes into the last layer in 8 bits of its largest number: where processors
    # round one sum before it otherwise, all logits are larger by the same ten-thousandth.
    tolerance = 3e-4 if path.parent.name == "emotions" else 1e-5
    assert_equal(browser, path, "serving_default", inputs, tolerance)


def pictures(path):
    from sklearn.datasets import load_digits

    images = load_digits().images[:20].astype("float32") / 16
    return [{"images": image[None, :, :, None]} for image in images]


def comments(path):
    preprocessor = ka.data.TextPreprocessor.load(path.parent)
    return [{"token_ids": pad(preprocessor([text]), 32)} for text in SENTENCES]


def sentences(path):
    preprocessor = ka.data.TaggerPreprocessor.load(path.parent)
    length = flatbuffer.read_graph(path).signatures[0].inputs[0].shape[1]
    batches = []
    for sentence in SENTENCES:
        ids = preprocessor([sentence.split()])
        batches.append({name: pad(np.asarray(array), length) for name, array in ids.items()})
    return batches


def pad(ids, length):
    """Ids (B, T, ...) with zeros behind them, up to `length`, and without more."""
    ids = ids[:, :length].astype("int32")
    return np.pad(ids, [(0, 0), (0, length - ids.shape[1])] + [(0, 0)] * (ids.ndim - 2))


def check_writing(browser, path):
    """Check that the page's loop around `step` continues plays as `LiteRTGenerator` does."""
    preprocessor = ka.data.SequencePreprocessor.load(path.parent)
    generator = ka.export.LiteRTGenerator(path)
    settings = manifest.read_manifest(path.parent)["files"][path.name]["generation"]
    for prompt in preprocessor(["ROMEO:", "First Citizen:\nWe"]):
        expected = np.trim_zeros(generator.generate([prompt])[0])
        assert len(expected) > FIRST
        begun = 0
        while begun < len(expected):
            before = np.concatenate([prompt, expected[:begun]]).astype("int32")
            written = np.asarray(browser.write(path, settings, before))[: len(expected) - begun]
            differ = np.flatnonzero(written != expected[begun:])
            if not differ.size:
                break
            # int8 sums differ in their last bits: some time two tokens that are as likely, to
            # 2 %, change places. From there on the browser goes on with the interpreter's text.
            k = begun + int(differ[0])
            best = generator.beam([[*prompt, *expected[:k]]], 1, width=2, num_return_sequences=2)
            assert {written[k - begun], expected[k]} == {*best["generated_ids"].ravel()}
            assert np.ptp(best["scores"]) < 0.02
            begun = k + 1


def check_pairs(browser, path):
    preprocessor = ka.data.SequencePreprocessor.load(path.parent)
    generator = ka.export.LiteRTGenerator(path)
    settings = manifest.read_manifest(path.parent)["files"][path.name]["generation"]
    signatures = {s.name: s for s in flatbuffer.read_graph(path).signatures}
    length = signatures["encode"].inputs[0].shape[1]
    batches = [{"source_ids": pad(preprocessor([x]), length)} for x in TEXTS[path.parent.name]]
    assert_equal(browser, path, "encode", batches)
    for inputs in batches:
        if "beam" in signatures:
            ((written, scores),) = [x.values() for x in browser.run(path, [("beam", inputs)])]
            expected = generator.loop(inputs, "beam")
            np.testing.assert_array_equal(written, expected["generated_ids"])
            np.testing.assert_allclose(scores, expected["scores"], atol=1e-5)
        ids = np.trim_zeros(inputs["source_ids"][0])
        greedy = np.trim_zeros(generator.generate([ids])[0])
        np.testing.assert_array_equal(browser.write(path, settings, ids), greedy)
        assert preprocessor.texts([greedy])[0]
