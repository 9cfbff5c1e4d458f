"""Loaded checkpoints on LiteRT: only built-in ops, and the outputs and texts of the model."""

import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled
from tests.pretrained.make_checkpoints import CHECKPOINTS, FOLDER
from tests.pretrained.test_parity import options_of, read_expected

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]
PAIRS = ("t5", "t5-1.1", "bart", "marian")
LANGUAGE = (
    "llama-3",
    "gpt2",
    "llama-2",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma-2",
    "gemma-3",
)
SPEECH = ("whisper", "whisper-texts")
READING = [name for name in CHECKPOINTS if name not in (*PAIRS, *LANGUAGE, *SPEECH)]


def assert_whole(report, *signatures):
    """Check signatures, that all ops are built in, and the outputs of a file."""
    assert {*signatures} <= {one.name for one in report.signatures}
    assert report.max_abs_error < 1e-4 and "built-in" in str(report)


@pytest.mark.parametrize("name", sampled(READING, 1))
def test_encoders_export_to_litert(name, tmp_path):
    inputs, _ = read_expected(FOLDER / name)
    model = ka.pretrained.load(FOLDER / name, **options_of(name))
    inputs = {name: x.astype("float32" if x.dtype.kind == "f" else "int32")
              for name, x in inputs.items()}  # fmt: skip
    report = ka.export.to_litert(model, tmp_path / "model.tflite", examples=inputs)
    assert report.max_abs_error < 1e-4 and "built-in" in str(report)


@pytest.mark.parametrize("name", sampled(LANGUAGE, 1))
def test_language_models_export_to_litert(name, tmp_path):
    model = ka.pretrained.load(FOLDER / name)
    path = tmp_path / "model.tflite"
    generate = ka.export.Generation("greedy", 16, 6, end_token_id=2)
    report = ka.export.to_litert(model, path, generate=generate)
    assert_whole(report, "step", "generate")
    generator, prompts = ka.export.LiteRTGenerator(path), [[5, 0, 3, 9], [0, 7], [1]]
    expected = ka.generation.generate(model, prompts, 6, end_token_id=2)
    np.testing.assert_array_equal(generator.loop(prompts)["generated_ids"], expected)


@pytest.mark.parametrize("name", sampled(PAIRS, 1))
def test_encoder_decoders_export_to_litert(name, tmp_path):
    model = ka.pretrained.load(FOLDER / name)
    path, begin = tmp_path / "model.tflite", {"start_token_id": 0, "end_token_id": 2}
    generate = ka.export.Generation("greedy", 12, 6, **begin)
    report = ka.export.to_litert(model, path, generate=generate)
    assert_whole(report, "encode", "step", "generate")
    generator, sources = ka.export.LiteRTGenerator(path), [[5, 3, 9, 4], [6, 7], [8]]
    expected = ka.generation.generate(model, sources, 6, **begin)
    np.testing.assert_array_equal(generator.loop(sources)["generated_ids"], expected)


def test_whisper_exports_to_litert(tmp_path):
    """Generate from spectrograms with the cache, in one file."""
    model = ka.pretrained.load(FOLDER / "whisper")
    inputs, _ = read_expected(FOLDER / "whisper")
    path, begin = tmp_path / "model.tflite", {"start_token_id": 30, "end_token_id": 29}
    generate = ka.export.Generation("greedy", 12, 6, **begin)
    ka.export.to_litert(model, path, generate=generate)
    sound = {"features": inputs["features"]}
    expected = ka.generation.generate(model, sound, 6, **begin)
    actual = ka.export.load(path, "generate")(sound)["generated_ids"]
    np.testing.assert_array_equal(actual, expected)
