"""Tokens are chosen in NumPy as Keras's operations choose them."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.generation.token_choice import IMPOSSIBLE, TokenChoice

OPTIONS = [
    {"temperature": 0},
    {"temperature": 0.7},
    {"temperature": 1.5, "top_k": 3},
    {"top_k": 100},
    {"top_p": 0.6},
    {"temperature": 2, "top_k": 5, "top_p": 0.9},
    {"top_p": 1.0},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_samplers_choose_the_same_tokens(options):
    choice = TokenChoice(**options)
    sampler = choice.make_sampler()
    logits = np.random.normal(size=(200, 11)).astype("float32")
    logits[:, 4] = IMPOSSIBLE
    logits[::3, 7] = logits[::3, 2]  # as likely as another one
    (uniform,) = choice.draw_uniform(3, (1, 200))
    expected, _ = ka.generation.inputs.draw_uniform(3, sampler, (1, 200))
    np.testing.assert_array_equal(uniform, expected[0])
    tokens = choice.choose(logits, uniform)
    np.testing.assert_array_equal(tokens, sampler.choose(logits, uniform))
    assert tokens.dtype == "int32" and 4 not in tokens
    if choice.temperature:
        probabilities = np.asarray(sampler.probabilities(logits))
        np.testing.assert_allclose(choice.probabilities(logits), probabilities, atol=1e-6)


def test_draws_follow_the_seed_of_keras():
    choice, sampler = TokenChoice(), ka.generation.Sample()
    np.random.seed(5)
    first = choice.draw_uniform(None, (4, 2))
    np.random.seed(5)
    np.testing.assert_array_equal(
        first, ka.generation.inputs.draw_uniform(None, sampler, (4, 2))[0]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, r"temperature=-1\): temperature must be .* at least 0"),
        ({"top_k": 0}, r"top_k=0\): top_k must be a whole number of at least 1"),
        ({"top_p": 0}, r"top_p=0\): top_p must be .* above 0"),
    ],
)
def test_options_have_bounds(options, message):
    with pytest.raises(ValueError, match=message):
        TokenChoice(**options)
