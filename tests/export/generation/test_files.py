"""Exports of every kind of model that generates. They take seconds each."""

import subprocess
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import Generation
from tests.export.conftest import TEXTS, TRANSLATOR, WRITER, vary
from tests.export.generation.test_endpoints import naive
from tests.grids import sampled
from tests.stacks import make_writer

pytestmark = pytest.mark.slow

BEAM = ka.generation.Beam(3, length_penalty=0.6, num_return_sequences=2)
DRAWING = ka.generation.Sample(0.8, top_k=9, top_p=0.9, min_p=0.02)
WRITERS = {
    "gpt_2": {"position": ka.positions.Learned(14)},
    "window": {"mask": ka.masks.Window(4), "position": "alibi", "num_layers": 1},
    "cosine": {"score": "cosine", "position": "rotary", "num_layers": 1},
    "additive": {"score": "additive", "num_layers": 1},
    "grouped heads": {"num_key_value_heads": 1, "position": "relative_bias", "num_layers": 1},
}


def write(num_layers=2, **settings):
    sizes = {"num_layers": num_layers, "num_heads": 2, "hidden_dim": 16}
    return vary(make_writer(23, **sizes, **settings))


def recurrent(**settings):
    return vary(ka.models.seq2seq_recurrent(19, 23, hidden_dim=8, **settings))


def check(report, *signatures):
    assert tuple(signature.name for signature in report.signatures) == signatures
    assert report.max_abs_error < 1e-4 and not report.warnings
    agreements = {p.argmax_agreement for p in report.parity if p.output == "generated_ids"}
    assert agreements <= {1.0, None}


@pytest.mark.parametrize("name", sampled(WRITERS))
def test_language_models(name, tmp_path):
    path = tmp_path / "m.tflite"
    report = ka.export.to_litert(
        write(**WRITERS[name]), path, generate=Generation(["greedy", BEAM], **WRITER)
    )
    check(report, "step", "generate", "beam")


@pytest.mark.sweep
def test_a_language_model_of_fixed_shapes(tmp_path):
    """Prompts go through `prefill` in pieces, and every tensor of the file has a fixed shape."""
    model, path = write(), tmp_path / "m.tflite"
    sizes = {"batch_size": 2, "sequence_length": 4}
    report = ka.export.to_litert(model, path, generate=Generation(DRAWING, **WRITER), **sizes)
    check(report, "prefill", "step", "generate")
    assert not any("dynamic" in line for line in report.gpu)
    generator = ka.export.LiteRTGenerator(path)
    prompts = [TEXTS[0].tolist(), TEXTS[1, :4].tolist()]  # six and four: two pieces with padding
    decoder = ka.generation.Decoder(model)
    for row, prompt in zip(generator.generate(prompts), prompts, strict=True):
        np.testing.assert_array_equal(row[None], naive(decoder, [prompt], 5, (3,)))
    drawn = generator.loop([[5, 7], [11]], seed=1)["generated_ids"]
    np.testing.assert_array_equal(drawn, generator.loop([[5, 7], [11]], seed=1)["generated_ids"])


def test_coverage_of_fixed_shapes(tmp_path):
    """Export a coverage, which the converter used to turn into a loop that it refused."""
    model, path = recurrent(attention="luong", coverage=True), tmp_path / "m.tflite"
    sizes = {"batch_size": 2, "sequence_length": 6}
    check(
        ka.export.to_litert(model, path, generate=Generation("greedy", **TRANSLATOR), **sizes),
        *("encode", "step", "generate"),
    )


@pytest.mark.parametrize("settings", sampled([{"cell": "lstm", "attention": "luong"}, {}]))
def test_recurrent_models(settings, tmp_path):
    """Loops within loops, and no TensorList."""
    model, path = recurrent(**settings), tmp_path / "m.tflite"
    report = ka.export.to_litert(model, path, generate=Generation(["greedy", BEAM], **TRANSLATOR))
    check(report, "encode", "step", "generate", "beam")
    source = {"source_ids": TEXTS.astype("int32")}
    result = ka.export.LiteRTGenerator(path).loop(TEXTS)["generated_ids"]
    decoder = ka.generation.Decoder(model)
    np.testing.assert_array_equal(result, naive(decoder, np.ones((2, 1)), 7, (2, 3), source))


def test_a_beam_equals_generate(translator, tmp_path):
    path = tmp_path / "m.tflite"
    ka.export.to_litert(translator, path, generate=Generation(BEAM, **TRANSLATOR))
    actual = ka.export.LiteRTGenerator(path).loop(TEXTS, "beam")
    result = ka.generation.generate(
        translator,
        TEXTS,
        7,
        sampler=BEAM,
        start_token_id=1,
        end_token_id=[2, 3],
        return_scores=True,
    )
    np.testing.assert_array_equal(actual["generated_ids"], result.ids)
    assert actual["generated_ids"].shape == (2, 2, 7)


@pytest.mark.parametrize("quantization", sampled(["int8_weights", "float16"]))
def test_quantized_files(quantization, tmp_path):
    """Check that signatures share one quantized copy of the weights, and report a drift."""
    model = write(tie_embeddings=False, intermediate_dim=2048)
    texts = np.random.default_rng(0).integers(1, 23, (4, 14))
    path = tmp_path / "m.tflite"
    report = ka.export.to_litert(
        model,
        path,
        generate=Generation(**WRITER),
        quantization=quantization,
        examples=texts,
    )
    share = {"float16": 0.5, "int8_weights": 0.25}[quantization]
    assert report.size < share * report.weights_bytes + 400_000
    assert report.drift.tokens == (4,) * 14 and report.drift.agreement >= 0.9
    assert 0 < max(report.drift.max_abs_error) < 1.0


def test_models_in_half_precision_are_exported_in_float32(tmp_path):
    from keras import config

    before = config.dtype_policy()
    try:
        config.set_dtype_policy("mixed_bfloat16")
        model = write()
    finally:
        config.set_dtype_policy(before)
    report = ka.export.to_litert(model, tmp_path / "m.tflite", generate=Generation([], **WRITER))
    assert report.warnings == ("exported in float32. The model computes in mixed_bfloat16",)


SERVED = """
import sys
sys.modules.update(dict.fromkeys(("keras", "keras_attention")))
import tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures
source = tf.constant([[5, 7, 11, 13, 2, 17], [18, 4, 8, 9, 0, 0]])
print(served["generate"](source_ids=source)["generated_ids"].numpy().tolist())
"""


@pytest.mark.parametrize("kind", sampled(["transformer", "recurrent"]))
def test_a_server_needs_only_tensorflow(kind, translator, tmp_path):
    model = translator if kind == "transformer" else recurrent()
    path = tmp_path / "served"
    report = ka.export.to_saved_model(
        model, path, generate=Generation(["greedy", BEAM], **TRANSLATOR)
    )
    check(report, "encode", "step", "generate", "beam")
    assert report.generation["kind"] == "encoder_decoder"
    command = [sys.executable, "-c", SERVED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    decoder = ka.generation.Decoder(model)
    source = {"source_ids": TEXTS.astype("int32")}
    assert done.stdout.strip() == str(naive(decoder, np.ones((2, 1)), 7, (2, 3), source).tolist())
