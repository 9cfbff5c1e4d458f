"""A file of every builder in LiteRT.js loads, runs, and gives the interpreter's numbers."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.graphs import flatbuffer
from keras_attention.files import manifest
from keras_attention.generation import constraints as rules
from tests.browser.session import BrowserError
from tests.export.conftest import vary
from tests.export.graphs.test_kernel_formats import make_model as make_products
from tests.grids import sampled
from tests.made_once import make_once
from tests.stacks import embed_characters, make_writer
from tests.tables import assert_lists, list_builders

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

SMALL = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
TARGETS = {"start_token_id": 1, "max_length": 7}
TEXTS = {"max_length": 14, "max_new_tokens": 6}
LENGTH = 4  # of sources and prompts
WHOLE = {
    "sequence_labeler": lambda: ka.models.sequence_labeler(
        50, 5, **SMALL, embedding=embed_characters(30), position=["alibi", "relative_bias"]
    ),
    "dependency_parser": lambda: ka.models.dependency_parser(
        50, 5, **SMALL, arc_dim=12, label_dim=8
    ),
    "text_classifier": lambda: ka.models.text_classifier(50, 5, **SMALL, pooling="cls"),
    "text_encoder": lambda: ka.models.text_encoder(
        50,
        **SMALL,
        pooling="last",
        embedding=ka.models.TextEmbedding(num_segments=2, embedding_dim=6),
        head=[keras.layers.Dense(16, "tanh", name="pooler")],
    ),
    "speech_recognizer": lambda: ka.models.speech_recognizer(
        9,
        **SMALL,
        embedding=ka.models.SpeechEmbedding(num_mel_bins=12, subsampling=2),
        kernel_size=3,
    ),
    "vision_transformer": lambda: ka.models.vision_transformer(
        8, 5, **SMALL, patch_size=2, num_channels=1
    ),
    "image_encoder": lambda: ka.models.image_encoder(
        8,
        **SMALL,
        patch_size=2,
        pooling="cls_mean",
        head=[keras.layers.Dense(6), keras.layers.UnitNormalization()],
    ),
    "object_detector": lambda: ka.models.object_detector(
        (8, 12), 3, **SMALL, embedding=ka.models.ImageEmbedding(stem_filters=(8,)), patch_size=2
    ),
    "question_answerer": lambda: ka.models.question_answerer(
        50,
        **SMALL,
        no_answer=True,
        embedding=embed_characters(30, num_segments=2, exact_match=True),
    ),
    "masked_language_model": lambda: ka.models.masked_language_model(
        50, **SMALL, embedding=ka.models.TextEmbedding.of_bert()
    ),
    "causal_language_model": lambda: make_writer(50, **SMALL, num_key_value_heads=1),
}
WRITING = {
    "causal_language_model": (
        lambda: ka.models.causal_language_model(23, **SMALL, position="rotary"),
        TEXTS,
    ),
    "encoder_decoder": (lambda: ka.models.encoder_decoder(23, **SMALL, structure="bart"), TARGETS),
    "constituency_parser": (lambda: ka.models.constituency_parser(50, 4, 3, **SMALL), TARGETS),
    "seq2seq_transformer": (lambda: ka.models.seq2seq_transformer(23, **SMALL), TARGETS),
    "speech_to_text": (
        lambda: ka.models.speech_to_text(
            23,
            **SMALL,
            embedding=ka.models.SpeechEmbedding(num_mel_bins=12, subsampling=2),
            kernel_size=3,
        ),
        TARGETS,
    ),
    "image_to_sequence": (
        lambda: ka.models.image_to_sequence((8, 12), 23, **SMALL, patch_size=4),
        TARGETS,
    ),
    "seq2seq_recurrent": (lambda: ka.models.seq2seq_recurrent(23, 23, hidden_dim=8), TARGETS),
}


def test_every_builder_is_here():
    names = list_builders()
    assert_lists("WHOLE or WRITING of tests/browser/test_builders.py", {*WHOLE, *WRITING}, names)


def export_whole(tmp_path_factory, name, quantization):
    """Return the file of a builder of `WHOLE`, for all tests that run it."""

    def export(folder):
        sizes = {"batch_size": 1, "sequence_length": 8}
        if name in ("object_detector", "vision_transformer"):
            del sizes["sequence_length"]
        report = ka.export.to_litert(
            vary(WHOLE[name]()),
            folder / "m.tflite",
            quantization=quantization,
            compatible_with="web",
            **sizes,
        )
        assert [runtime.ran for runtime in report.runtimes[:2]] == [True, True]

    return make_once(tmp_path_factory, f"{name}-whole-{quantization}", export) / "m.tflite"


def export_writing(tmp_path_factory, name, quantization):
    """Return the file of a builder of `WRITING`, which generates, for all tests that run it."""

    def export(folder):
        make, settings = WRITING[name]
        generate = ["greedy", ka.generation.Beam(3, num_return_sequences=2)]
        sizes = {"batch_size": 1, "sequence_length": LENGTH, "compatible_with": "web"}
        generate = ka.export.Generation(generate, end_token_id=2, **settings)
        path = folder / "m.tflite"
        ka.export.to_litert(
            vary(make()), path, quantization=quantization, generate=generate, **sizes
        )

    return make_once(tmp_path_factory, f"{name}-writing-{quantization}", export) / "m.tflite"


@pytest.mark.parametrize("quantization", sampled(["int8_weights", None, "float16"]))
@pytest.mark.parametrize("name", WHOLE)
def test_whole_models(name, quantization, browser, tmp_path_factory):
    assert_equal(browser, export_whole(tmp_path_factory, name, quantization), "serving_default")


@pytest.mark.parametrize("runtime", ["interpreter", "web"])
def test_int4_kernels(runtime, browser, tmp_path):
    """Use a wider model, because the kernels of the others are too small for int4.

    A file for the interpreter has blocks, and one for browsers has rows.
    """
    model, _ = make_products()
    path = tmp_path / "m.tflite"
    ka.export.to_litert(model, path, quantization="int4_weights", compatible_with=runtime)
    assert_equal(browser, path, "serving_default")


@pytest.mark.parametrize("name", sampled(WRITING, 1))
def test_models_that_write(name, browser, tmp_path_factory):
    """Run all signatures, and the guide's loop around `step`."""
    path = export_writing(tmp_path_factory, name, None)
    signatures = {each.name: each for each in flatbuffer.read_graph(path).signatures}
    for signature in signatures:
        assert_equal(browser, path, signature)
    ids = next((x.name for x in signatures["generate"].inputs if x.name.endswith("_ids")), None)
    if ids is None:  # the guide's loop reads text, and no images or sounds
        assert name in ("image_to_sequence", "speech_to_text")
        return
    prompts = [[5, 7, 11], [13, 4, 8, 9], [19]]
    if name == "causal_language_model":
        prompts.append([5, 7, 11, 13, 4, 8])  # in two pieces
    generator, settings = ka.export.LiteRTGenerator(path), generation(path)
    for prompt in prompts:
        expected = generator.generate([prompt])[0]
        np.testing.assert_array_equal(
            browser.write(path, settings, prompt), np.trim_zeros(expected)
        )
        if len(prompt) <= LENGTH:
            padding = (0, LENGTH - len(prompt))
            if name == "causal_language_model":
                padding = padding[::-1]
            inputs = {ids: np.pad(prompt, padding)[None].astype("int32")}
            ((written,),) = browser.run(path, [("generate", inputs)])[0].values()
            np.testing.assert_array_equal(np.trim_zeros(written), np.trim_zeros(expected))


CONSTRAINTS = [
    rules.MinimumLength(3, end_token_ids=[2]),
    rules.NoRepeatNGrams(2),
    rules.Forbidden([9, 11]),
    rules.AtFirst(rules.Allowed([0])),  # not padding in this model
]


@pytest.mark.parametrize("name", sampled(["causal_language_model", "seq2seq_transformer"]))
def test_every_id_is_a_token_but_those_that_are_forbidden(name, browser, tmp_path):
    """Check the page's loop without padding, with several start ids and constraints."""
    if name == "causal_language_model":
        model = ka.models.causal_language_model(
            13, **SMALL, embedding=ka.models.TextEmbedding(padding_id=None)
        )
        settings, prompts = TEXTS, [[0, 7, 11], [5, 0, 0, 4, 8, 9], [0]]
    else:
        embedding = ka.models.TextEmbedding(padding_id=None)
        model = ka.models.seq2seq_transformer(13, **SMALL, embedding=embedding)
        settings, prompts = TARGETS | {"start_token_id": [1, 5]}, [[0, 7, 11, 3], [5, 0, 0, 4]]
    path = tmp_path / "m.tflite"
    ka.export.to_litert(
        vary(model),
        path,
        generate=ka.export.Generation(end_token_id=2, constraints=CONSTRAINTS, **settings),
        batch_size=1,
        sequence_length=LENGTH,
        compatible_with="web",
    )
    generator, file_settings = ka.export.LiteRTGenerator(path), generation(path)
    assert file_settings["padding_id"] is None and len(file_settings["constraints"]) == 4
    free = ka.export.LiteRTGenerator(path, constraints=[])
    for prompt in prompts:
        (expected,) = generator.generate([prompt]).tolist()
        assert browser.write(path, file_settings, prompt) == expected
        assert expected[0] == 0 and expected != free.generate([prompt])[0].tolist()
    written = browser.write(path, file_settings | {"constraints": []}, prompts[0])
    assert written == free.generate([prompts[0]])[0].tolist()
    unknown = [{"name": "OneOf", "sequences": [[3]]}]
    with pytest.raises(BrowserError, match="Only the loops in the file apply OneOf"):
        browser.write(path, file_settings | {"constraints": unknown}, prompts[0])


def test_free_shapes_are_an_error(browser, tmp_path):
    path = tmp_path / "m.tflite"
    ka.export.to_litert(WHOLE["text_classifier"](), path)
    with pytest.raises(BrowserError, match="does not match expected"):
        browser.run(path, [("serving_default", {"token_ids": np.ones((1, 8), "int32")})])


def generation(path):
    return manifest.read_manifest(path.parent)["files"][path.name]["generation"]


def assert_equal(browser, path, signature, draws=None, tolerance=1e-5):
    """Assert that the browser gives the interpreter's numbers, on two draws or on `draws`."""
    run = ka.export.load(path, signature)
    draws = draws or [draw(run, seed) for seed in (0, 1)]
    results = browser.run(path, [(signature, inputs) for inputs in draws])
    for inputs, outputs in zip(draws, results, strict=True):
        expected = run(inputs)
        assert outputs.keys() == expected.keys()
        for name, array in expected.items():
            assert outputs[name].shape == array.shape and outputs[name].dtype == array.dtype
            if array.dtype == np.float32:
                scale = max(1.0, np.abs(array).max())
                np.testing.assert_allclose(
                    outputs[name], array, atol=tolerance * scale, err_msg=name
                )
            else:
                np.testing.assert_array_equal(outputs[name], array, err_msg=name)


IDS = 1, 12  # that every model knows
LIMITS = {
    "segment_ids": (0, 2),
    "exact_match": (0, 2),
    "mask": (0, 2),
    "start": (0, 2),
    "index": (2, 4),
}


def draw(run, seed):
    """Inputs for a signature of fixed shapes."""
    random, arrays = np.random.default_rng(seed), {}
    details = run.function.get_input_details()
    for name, dtype in run.inputs.items():
        shape = details[name]["shape"]
        if np.issubdtype(dtype, np.floating):
            arrays[name] = random.normal(size=shape).astype(dtype)
        else:
            limits = next((x for end, x in LIMITS.items() if name.endswith(end)), IDS)
            arrays[name] = random.integers(*limits, shape, dtype=dtype)
    return arrays
