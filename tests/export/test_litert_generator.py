import json
import pathlib
import shutil
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.device import litert_generator
from keras_attention.export import LiteRTGenerator
from tests.export.conftest import TEXTS
from tests.export.generation.test_endpoints import naive
from tests.grids import sampled

PROMPTS = [TEXTS[0].tolist(), TEXTS[1, :4].tolist()]
SOURCES = {"source_ids": np.array([[5, 7, 11, 13, 2, 17], [18, 4, 8, 0, 0, 0]], "int32")}


@pytest.fixture(scope="module")
def generator(written):
    return LiteRTGenerator(written[0])


def test_a_file_generates_the_tokens_of_the_model(generator, decoders):
    """Compare tokens one by one and in one loop, for a batch of unequal rows and for each row."""
    together = generator.generate(PROMPTS)
    np.testing.assert_array_equal(together, generator.loop(PROMPTS)["generated_ids"])
    for row, prompt in zip(together, PROMPTS, strict=True):
        expected = naive(decoders["writer"], [prompt], 5, (3,))
        np.testing.assert_array_equal(row[None], expected)
        np.testing.assert_array_equal(generator.generate([prompt]), expected)


def test_an_encoder_decoder_of_fixed_shapes(translated, decoders):
    generator = LiteRTGenerator(translated[0])
    result = generator.generate(SOURCES["source_ids"])
    expected = naive(decoders["translator"], np.ones((2, 1)), 7, (2, 3), SOURCES)
    np.testing.assert_array_equal(result, expected[:, : result.shape[1]])
    np.testing.assert_array_equal(generator.loop(SOURCES)["generated_ids"], expected)
    with pytest.raises(ValueError, match="takes 2 rows at a time. It was given 1"):
        generator.generate([[5, 7]])


def test_an_encoder_takes_tensors_of_pictures():
    file = types.SimpleNamespace(inputs={"encode": {"images": {"dtype": np.float32}}})
    source = LiteRTGenerator._source(file, keras.ops.ones((1, 2, 2, 3)))
    assert source["images"].shape == (1, 2, 2, 3) and source["images"].dtype == "float32"


def test_tokens_come_one_by_one_until_the_cache_is_full(generator):
    tokens = list(generator.stream([[5, 7, 11]], max_new_tokens=100))
    assert len(tokens) == 14 - 3 + 1  # the last one takes no place
    assert all(token.shape == (1,) and token.dtype == "int32" for token in tokens)


def test_rows_that_have_ended_are_padding(written, generator):
    first = generator.generate(PROMPTS)
    ends = first[0, 1]
    ending = LiteRTGenerator(written[0], end_token_ids=[int(ends)])
    result = ending.generate(PROMPTS)
    stop = first[1].tolist().index(ends) + 1 if ends in first[1] else 5
    assert result[0].tolist()[:2] == first[0, :2].tolist() and not result[0, 2:].any()
    assert result[1].tolist()[:stop] == first[1].tolist()[:stop] and not result[1, stop:].any()


def test_draws_follow_their_seed(generator):
    drawn = generator.generate(PROMPTS, temperature=3.0, top_k=4, seed=1)
    np.testing.assert_array_equal(
        drawn, generator.generate(PROMPTS, temperature=3.0, top_k=4, seed=1)
    )
    assert any(
        (drawn != generator.generate(PROMPTS, temperature=3.0, top_k=4, seed=k)).any()
        for k in (2, 3)
    )


def test_draws_are_in_proportion():
    logits = np.log(np.tile([[0.5, 0.3, 0.2]], (4000, 1)))
    random = np.random.default_rng(0)
    shares = np.bincount(litert_generator.choose_tokens(logits, 1.0, 2, random), minlength=3) / 4000
    np.testing.assert_allclose(shares, [5 / 8, 3 / 8, 0], atol=0.03)
    assert (litert_generator.choose_tokens(logits) == 0).all()


def test_padding_is_never_chosen(generator):
    logits = np.zeros((2, 23))
    forbidden = generator._forbid(logits, [np.array([5])] * 2, np.zeros((2, 0), "int32"))
    assert (forbidden[:, 0] == -np.inf).all() and (forbidden[:, 1:] == 0).all()


@pytest.mark.parametrize(
    "prompt, message",
    [([], "without ids"), ([[5], [0, 0]], "without ids"), ([[5] * 15], "15 tokens.* room for 14")],
)
def test_invalid_prompts_are_refused(generator, prompt, message):
    with pytest.raises(ValueError, match=message):
        generator.generate(prompt)


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ([[-3, 5]], {}, "expected ids, whole numbers"),
        ([[5, 23]], {}, "from 0 to below 23"),
        ([[5.5]], {}, "expected ids, whole numbers"),
        (["a text"], {}, "expected ids|without ids"),
        ([[5]], {"max_new_tokens": 0}, "max_new_tokens=0"),
        ([[5]], {"temperature": -1.0}, "temperature=-1.0"),
        ([[5]], {"top_k": 3}, "top_k=3: expected .* needs a temperature"),
        ([[5]], {"temperature": 1.0, "top_k": 0}, "top_k=0"),
    ],
)
def test_wrong_arguments_are_refused(generator, prompt, settings, message):
    with pytest.raises(ValueError, match=message):
        generator.generate(prompt, **settings)


def test_ids_of_any_vocabulary_fit_into_32_bits(written):
    generator = LiteRTGenerator(written[0])
    generator.settings.pop("vocabulary_size")
    with pytest.raises(ValueError, match="below 2147483648"):
        generator.generate([[2**40]])


def test_a_loop_refuses_prompts_that_do_not_fit(generator):
    assert generator.loop([[5] * 10])["generated_ids"].shape == (1, 5)
    with pytest.raises(ValueError, match="11 tokens, .* room for 10"):
        generator.loop([[5] * 11])


def test_a_prefix_comes_together(written):
    with pytest.raises(ValueError, match="first 3 tokens attend to one another"):
        LiteRTGenerator(written[0], least_prompt=3).generate([[5, 7]])


def test_rows_end_with_any_of_the_ends(written):
    free = LiteRTGenerator(written[0], end_token_ids=[]).generate([[5, 7, 11]])[0]
    never, target = 22, int(free[1])
    assert never not in free
    result = LiteRTGenerator(written[0], end_token_ids=[never, target]).generate([[5, 7, 11]])[0]
    assert result.tolist() == free[: list(free).index(target) + 1].tolist()


def test_one_prompt_needs_no_brackets(generator):
    np.testing.assert_array_equal(generator.generate([5, 7]), generator.generate([[5, 7]]))


def test_wrong_files_are_refused(written, tmp_path):
    with pytest.raises(ValueError, match="no 'beam'. It has"):
        LiteRTGenerator(written[0]).loop([[5]], "beam")
    renamed = shutil.copy(written[0], tmp_path / "renamed.tflite")
    with pytest.raises(ValueError, match="settings .* are missing.*manifest.json"):
        LiteRTGenerator(renamed).generate([[5]])
    plain = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    ka.export.to_litert(plain, tmp_path / "plain.tflite")
    with pytest.raises(ValueError, match="cannot generate text. Export the model with generate"):
        LiteRTGenerator(tmp_path / "plain.tflite")


ALONE = """
import sys
sys.modules.update(dict.fromkeys(("keras", "tensorflow", "keras_attention")))
from litert_generator import LiteRTGenerator
generator = LiteRTGenerator("writer.tflite", end_token_ids=[], max_length=14, max_new_tokens=5)
print(generator.generate([[5, 7, 11]]).tolist())
"""


def test_the_file_runs_in_an_app_without_packages(written, generator, tmp_path):
    """Copy the file beside a model, without a manifest, Keras and TensorFlow."""
    shutil.copy(written[0], tmp_path)
    shutil.copy(litert_generator.__file__, tmp_path)
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = LiteRTGenerator(written[0], end_token_ids=[])
    assert json.loads(done.stdout) == expected.generate([[5, 7, 11]]).tolist()


def test_the_manifest_has_the_generation_settings(written):
    manifest = json.loads(pathlib.Path(written[0]).with_name("manifest.json").read_text())
    expected = manifest["files"]["writer.tflite"]["generation"]
    assert (
        expected["max_length"] == 14
        and expected["end_token_ids"] == [3]
        and expected["padding_id"] == 0
    )


def test_files_of_later_contracts_are_refused(written):
    with pytest.raises(ValueError, match="contract 2. This program supports contracts up to 1"):
        LiteRTGenerator(written[0], contract=2)


def test_a_file_that_was_changed_is_refused(written, tmp_path):
    path = tmp_path / written[0].name
    for file in (written[0], written[0].with_name("manifest.json")):
        shutil.copy(file, tmp_path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="writer.tflite is not the file that .*manifest.json des"):
        LiteRTGenerator(path)


BEAMS = [
    ka.generation.Beam(3, length_penalty=0.6, num_return_sequences=2),
    pytest.param(ka.generation.Beam(1), marks=pytest.mark.slow),
    # wider than the vocabulary
    pytest.param(ka.generation.Beam(30, num_return_sequences=4), marks=pytest.mark.slow),
]


def check_beam(result, model, prompts, sampler, count, **ends):
    expected = ka.generation.generate(
        model, prompts, count, sampler=sampler, return_scores=True, **ends
    )
    rows = len(prompts), sampler.num_return_sequences
    assert result["generated_ids"].shape == (*rows, count)
    np.testing.assert_array_equal(result["generated_ids"], expected.ids.reshape(*rows, count))
    np.testing.assert_allclose(result["scores"], expected.totals.reshape(rows), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", BEAMS, ids=str)
def test_a_beam_over_steps_equals_generate(sampler, generator, writer):
    result = generator.beam(PROMPTS, **sampler_settings(sampler))
    check_beam(result, writer, PROMPTS, sampler, 5, end_token_id=3)


@pytest.mark.slow
def test_beams_of_short_texts(written, writer):
    """Nearly every token ends a text. The beam stays full, and the penalty prefers long texts."""
    ends = list(range(4, 23))
    sampler = ka.generation.Beam(3, length_penalty=5.0, num_return_sequences=3)
    result = LiteRTGenerator(written[0], end_token_ids=ends).beam(
        PROMPTS, **sampler_settings(sampler)
    )
    check_beam(result, writer, PROMPTS, sampler, 5, end_token_id=ends)


def sampler_settings(sampler):
    config = sampler.get_config()
    return {k: config[k] for k in ("width", "length_penalty", "num_return_sequences")}


@pytest.mark.slow
def test_a_beam_of_fixed_batch_goes_in_turns(translated, translator):
    """Sources of two rows, and beams of two rows at a time."""
    sampler = BEAMS[0]
    result = LiteRTGenerator(translated[0]).beam(SOURCES, **sampler_settings(sampler))
    prompts = SOURCES["source_ids"]
    check_beam(result, translator, prompts, sampler, 7, start_token_id=1, end_token_id=[2, 3])


CONSTRAINTS = [
    ka.generation.constraints.AtFirst(ka.generation.constraints.Allowed([6])),
    ka.generation.constraints.AtFirst(ka.generation.constraints.Forbidden([9])),
    ka.generation.constraints.Forbidden([11, 12]),
    ka.generation.constraints.MinimumLength(3, [3]),
    ka.generation.constraints.Allowed(range(20)),
    ka.generation.constraints.NoRepeatNGrams(2),
]
DESCRIBED = [
    {"name": "AtFirst", "constraint": {"name": "Allowed", "ids": [6]}},
    {"name": "AtFirst", "constraint": {"name": "Forbidden", "ids": [9]}},
    {"name": "Forbidden", "ids": [11, 12]},
    {"name": "MinimumLength", "length": 3, "end_token_ids": [3]},
    {"name": "Allowed", "ids": [*range(20)]},
    {"name": "NoRepeatNGrams", "size": 2},
]


def test_constraints_hold_in_every_step(written, writer):
    generator = LiteRTGenerator(written[0], constraints=DESCRIBED)
    options = {"constraints": CONSTRAINTS, "end_token_id": 3}
    expected = ka.generation.generate(writer, PROMPTS, 5, **options)
    assert (expected[:, 0] == 6).all()
    np.testing.assert_array_equal(generator.generate(PROMPTS), expected)
    other = LiteRTGenerator(written[0], constraints=[{"name": "AtFirst", "constraint": {}}])
    with pytest.raises(ValueError, match="constraint None. Outside of the file"):
        other.generate(PROMPTS)
    other = LiteRTGenerator(written[0], constraints=[{"name": "OneOf", "sequences": [[3]]}])
    with pytest.raises(ValueError, match="constraint OneOf. .* Use loop()"):
        other.beam(PROMPTS)


@pytest.mark.slow
def test_loops_in_a_file_keep_to_constraints(translator, tmp_path):
    path = tmp_path / "m.tflite"
    settings = {"start_token_id": 1, "end_token_id": 3, "constraints": CONSTRAINTS}
    sampler = BEAMS[0]
    generate = ka.export.Generation(["greedy", sampler], max_length=7, **settings)
    report = ka.export.to_litert(translator, path, generate=generate)
    assert report.generation["constraints"] == DESCRIBED
    generator, sources = LiteRTGenerator(path), SOURCES["source_ids"]
    expected = ka.generation.generate(translator, sources, 7, **settings)
    np.testing.assert_array_equal(generator.loop(sources)["generated_ids"], expected)
    result = generator.generate(sources)
    np.testing.assert_array_equal(result, expected[:, : result.shape[1]])
    check_beam(generator.loop(sources, "beam"), translator, sources, sampler, 7, **settings)
    check_beam(generator.beam(sources, **sampler_settings(sampler)), translator, sources, sampler,
               7, **settings)  # fmt: skip


def test_a_beam_is_bounded(generator):
    for wrong in ({"width": 0}, {"num_return_sequences": 5}, {"length_penalty": -1.0}):
        with pytest.raises(ValueError, match="width=.* expected at least 1"):
            generator.beam(PROMPTS, **wrong)
    result = generator.beam([[5] * 12], 100, width=2)
    assert result["generated_ids"].shape == (1, 1, 14 - 12 + 1)  # the last one takes no place


@pytest.mark.slow
@pytest.mark.parametrize("sizes", sampled([{}, {"batch_size": 1, "sequence_length": 6}]))
def test_a_beam_over_steps_equals_the_loop(sizes, translator, tmp_path):
    path, sampler = tmp_path / "m.tflite", BEAMS[0]
    generate = ka.export.Generation(sampler, 7, start_token_id=1, end_token_id=[2, 3])
    ka.export.to_litert(translator, path, generate=generate, **sizes)
    generator = LiteRTGenerator(path)
    for sources in SOURCES["source_ids"][:, None]:
        result = generator.beam(sources, **sampler_settings(sampler))
        loop = generator.loop(sources, "beam")
        np.testing.assert_array_equal(result["generated_ids"], loop["generated_ids"])
        np.testing.assert_allclose(result["scores"], loop["scores"], rtol=1e-5)


@pytest.mark.parametrize("content", ["[]", "null", "{", '{"files": []}', '{"files": {"m": 3}}'])
def test_a_damaged_manifest_is_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(b"")
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match="manifest.json is damaged. Copy it"):
        LiteRTGenerator(tmp_path / "m")


def test_unknown_arguments_are_refused(written):
    with pytest.raises(TypeError, match="no argument end_ids. Use one of constraints"):
        LiteRTGenerator(written[0], end_ids=[3])
