"""The test cases for the endpoints of a model that generates."""

import numpy as np
import pytest

from keras_attention.export.generation import endpoints
from keras_attention.export.generation.cases import CaseMaker
from tests.export.conftest import WRITER
from tests.export.generation.test_settings import make


def make_cases(decoder, *generate, **sizes):
    generation = make(decoder, list(generate), **sizes, **WRITER)
    made = endpoints.make_endpoints(generation)
    cases, notes = CaseMaker(generation, made).make_all()
    assert not notes
    return cases


@pytest.mark.slow
def test_a_text_is_followed_through_every_endpoint(decoders):
    """Check batches of one row and of three: a prompt, a token, three tokens, and the loops."""
    cases = make_cases(decoders["writer"], "greedy")
    assert {name: len(made) for name, made in cases.items()} == {"step": 6, "generate": 2}
    lengths = [case.inputs["token_ids"].shape for case in cases["step"]]
    assert lengths == [(1, 7), (1, 1), (1, 3), (3, 7), (3, 1), (3, 3)]
    assert [int(case.inputs["index"]) for case in cases["step"]] == [0, 7, 8] * 2
    first, second = cases["step"][3:5]
    for name in first.cache:  # each goes on from the cache that the one before it leaves
        np.testing.assert_array_equal(second.inputs[name], first.outputs[name])
    assert first.inputs["start"][0] > 0  # one prompt is padded


def test_fixed_shapes_have_a_prompt_and_tokens(decoders):
    cases = make_cases(decoders["writer"], batch_size=2, sequence_length=4)
    assert {name: len(made) for name, made in cases.items()} == {"prefill": 1, "step": 2}
