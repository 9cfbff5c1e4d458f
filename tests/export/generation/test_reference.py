import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import ExportError
from keras_attention.export.checks import cases
from keras_attention.export.generation import endpoints
from keras_attention.export.generation.reference import SequenceScore
from tests.export.conftest import TEXTS, TRANSLATOR, WRITER
from tests.export.generation.test_settings import make


def outputs(decoder, name, inputs, generate, **arguments):
    """Return an endpoint's outputs in eager code, and their score."""
    generation = make(decoder, generate, **arguments)
    (point,) = (p for p in endpoints.make_endpoints(generation) if p.name == name)
    return cases.run_model(point, inputs), SequenceScore(generation, name, inputs)


@pytest.fixture(scope="module")
def greedy(decoders):
    prompts = {"token_ids": np.stack([TEXTS[0], np.roll(TEXTS[1], 2)]).astype("int32")}
    return outputs(
        decoders["writer"], "generate", prompts, "greedy", **WRITER | {"end_token_id": None}
    )


def test_the_best_tokens_are_right(greedy):
    inputs, score = greedy
    error, agreement = score(inputs)["generated_ids"]
    assert error < 1e-6 and agreement == 1.0


def test_all_other_tokens_are_wrong(greedy):
    inputs, score = greedy
    ids = inputs["generated_ids"].copy()
    ids[1, 2] = ids[1, 2] % 22 + 1
    error, agreement = score({"generated_ids": ids})["generated_ids"]
    assert error > 1e-2 and agreement < 1.0


def test_tokens_that_a_constraint_forbids_are_not_right(decoders, greedy):
    free, score = greedy
    rules = ka.generation.constraints
    first = rules.AtFirst(rules.Allowed([6]))
    options = WRITER | {"end_token_id": None, "constraints": [first, rules.NoRepeatNGrams(1)]}
    inputs, score = outputs(decoders["writer"], "generate", score.inputs, "greedy", **options)
    assert (inputs["generated_ids"][:, 0] == 6).all()
    assert score(inputs)["generated_ids"] == (pytest.approx(0, abs=1e-6), 1.0)
    error, agreement = score(free)["generated_ids"]
    assert error == np.inf and agreement < 1.0


@pytest.mark.parametrize("change", ["beyond the end", "gap", "shape"])
def test_sequence_score_refuses_malformed_generated_ids(greedy, change):
    inputs, score = greedy
    ids = inputs["generated_ids"].copy()
    if change == "beyond the end":
        ending = make(score.plan.decoder, **WRITER | {"end_token_id": int(ids[0, 1])})
        score = SequenceScore(ending, "generate", score.inputs)
    elif change == "gap":
        ids[0, -1] = 0  # neither full nor ended
    else:
        ids = ids[:, :-1]
    with pytest.raises(ExportError, match="generate returns (a row without END|ids of shape)"):
        score({"generated_ids": ids})


def test_draws_must_follow_their_random_numbers(decoders):
    sampler = ka.generation.Sample(temperature=4.0, top_k=9)
    random = np.random.default_rng(0)
    sources = {"source_ids": random.integers(1, 19, (2, 5), dtype="int32")}
    sources["uniform"] = random.random((2, 7), "float32")
    inputs, score = outputs(decoders["translator"], "generate", sources, sampler, **TRANSLATOR)
    error, agreement = score(inputs)["generated_ids"]
    assert error < 1e-5 and agreement > 0.9
    score.inputs["uniform"] = 1 - score.inputs["uniform"]
    assert score(inputs)["generated_ids"][0] > 1e-3


@pytest.mark.slow
def test_a_beam_must_count_right(decoders):
    beam = ka.generation.Beam(3, length_penalty=0.6, num_return_sequences=2)
    sources = {"source_ids": np.random.default_rng(1).integers(1, 19, (2, 5), dtype="int32")}
    inputs, score = outputs(decoders["translator"], "beam", sources, beam, **TRANSLATOR)
    assert score(inputs)["scores"][0] < 1e-5
    assert score({**inputs, "scores": inputs["scores"] - 0.1})["scores"][0] > 1e-2
    with pytest.raises(ExportError, match="not the best first"):
        score({**inputs, "scores": inputs["scores"][:, ::-1]})
