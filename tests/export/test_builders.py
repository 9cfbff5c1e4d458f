"""The builders, whole: files that equal the model, at free and at fixed shapes."""

import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports, randomize
from tests.grids import sampled
from tests.stacks import embed_characters, make_writer


def labeler(**settings):
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=24)
    return ka.models.sequence_labeler(50, 5, **sizes, **settings)


def free_inputs(graph):
    """Return the shapes of the signature with free shapes."""
    (signature,) = (s for s in graph.signatures if s.name == "serving_default")
    return {tensor.name: tensor.shape for tensor in signature.inputs}


@pytest.mark.slow
def test_words_and_characters():
    model = labeler(
        embedding=embed_characters(30),
        position=["sinusoidal", "alibi", "relative_bias"],
        mask=ka.masks.Window(3),
    )
    inputs = free_inputs(assert_exports(model))
    assert inputs == {"token_ids": (None, None), "character_ids": (None, None, 16)}


@pytest.mark.slow
def test_texts():
    model = ka.models.text_classifier(
        50,
        5,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        embedding=ka.models.TextEmbedding(token_dropout=0.1),
        pooling="cls",
    )
    assert free_inputs(assert_exports(model)) == {"token_ids": (None, None)}


def writer(builder, **settings):
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=24)
    return getattr(ka.models, builder)(50, **sizes, **settings)


@pytest.mark.slow
def test_the_next_token():
    """Check that the tied table of tokens is in the file once."""
    model = make_writer(50, mask=ka.masks.Window(3), num_key_value_heads=1)
    graph = assert_exports(model)
    assert free_inputs(graph) == {"token_ids": (None, None)}
    assert [t.shape for t in graph.constants if t.constant >= 4 * 50 * 16] == [(50, 16)]


@pytest.mark.slow
def test_tokens_that_were_masked():
    model = writer("masked_language_model", embedding=ka.models.TextEmbedding.of_bert())
    inputs = free_inputs(assert_exports(model))
    assert inputs == {"token_ids": (None, None), "segment_ids": (None, None)}


@pytest.mark.slow
@pytest.mark.parametrize("structure", sampled(["t5_1.1", "bart"]))
def test_source_and_target(structure):
    model = writer("encoder_decoder", structure=structure)
    inputs = free_inputs(assert_exports(model))
    assert inputs == {"source_ids": (None, None), "target_ids": (None, None)}


@pytest.mark.slow
def test_images():
    model = ka.models.vision_transformer(
        (8, 12),
        5,
        patch_size=4,
        num_channels=1,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
    )
    assert free_inputs(assert_exports(model)) == {"images": (None, 8, 12, 1)}


@pytest.mark.slow
def test_a_server_needs_only_tensorflow(tmp_path):
    """Layers of this package in the new process that can import neither Keras nor the package."""
    model = labeler(embedding=embed_characters(30))
    randomize(model)
    report = ka.export.to_saved_model(model, tmp_path / "saved_model")
    assert report.max_abs_error <= 1e-5
    assert "runs in a new process without Keras, called by name" in report.checks


@pytest.fixture(scope="module")
def padded():
    x = np.random.default_rng(0).integers(2, 200, (64, 24))
    return np.where(np.arange(24) < np.arange(64)[:, None] % 20 + 4, x, 0)


@pytest.mark.slow
def test_int8_needs_a_small_mask_constant(padded, tmp_path, in_this_process):
    """Show that -1e9 leaves no levels for the int8 scores, because it determines their scale."""
    model = ka.models.sequence_labeler(
        200, 5, num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=128
    )
    settings = {"quantization": "int8", "calibration": [padded]}
    mild = ka.export.to_litert(model, tmp_path / "mild.tflite", **settings)
    harsh = ka.export.to_litert(model, tmp_path / "harsh.tflite", **settings, mask_constant=-1e9)
    assert mild.mask_constant == -100 and mild.argmax_agreement > 0.85
    assert harsh.max_abs_error > 2 * mild.max_abs_error
    assert harsh.argmax_agreement < 0.8 and "Pass examples=" in harsh.warnings[0]
