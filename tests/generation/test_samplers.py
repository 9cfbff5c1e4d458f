"""Samplers: the tokens they keep by definition, and the frequencies of their draws."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.generation.samplers import draw
from keras_attention.generation.samplers.base import IMPOSSIBLE

G = ka.generation
random = np.random.default_rng(0)
LOGITS = random.normal(size=(5, 13), scale=2).astype("float32")


def softmax(logits):
    weights = np.exp(logits.astype("float64") - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def kept_by_definition(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    """Compute the probabilities of one row by sorting. The logits have no ties."""
    weights = softmax(logits / temperature)
    order = list(np.argsort(-weights))
    if top_k is not None:
        order = order[:top_k]
    if top_p is not None:
        mass, nucleus = 0.0, []
        for i in order:
            if mass < top_p * sum(weights[j] for j in order):
                nucleus.append(i)
                mass += weights[i]
        order = nucleus
    if min_p is not None:
        order = [i for i in order if weights[i] >= min_p * weights[order[0]]]
    stored = np.zeros_like(weights)
    stored[order] = weights[order]
    return stored / stored.sum()


def test_a_nucleus_is_as_small_as_possible():
    logits = np.log([[0.5, 0.25, 0.125, 0.125]]).astype("float32")
    for top_p, stored in [(0.5, 1), (0.4, 1), (0.75, 2)]:
        weights = ops.convert_to_numpy(G.Sample(top_p=top_p).probabilities(logits))
        assert (weights > 0).sum() == stored


@pytest.mark.parametrize(
    "kwargs",
    [
        dict(),
        dict(temperature=0.5),
        dict(top_k=3),
        dict(top_k=99),
        dict(top_p=0.6),
        dict(top_p=1.0),
        dict(min_p=0.2),
        dict(temperature=2.0, top_k=7, top_p=0.8, min_p=0.3),
    ],
    ids=str,
)
def test_sample_keeps_the_tokens_of_its_definition(kwargs):
    result = ops.convert_to_numpy(G.Sample(**kwargs).probabilities(LOGITS))
    expected = [kept_by_definition(row, **kwargs) for row in LOGITS]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_equally_probable_tokens_are_kept_together():
    logits = np.log(np.array([[0.4, 0.2, 0.2, 0.2]], "float32"))
    for sampler in (G.Sample(top_k=2), G.Sample(top_p=0.5)):
        weights = ops.convert_to_numpy(sampler.probabilities(logits))
        np.testing.assert_allclose(weights, [[0.4, 0.2, 0.2, 0.2]], atol=1e-6)


def test_greedy_takes_the_best_or_first_token():
    logits = np.array([[1.0, 3.0, 3.0], [5.0, 3.0, 3.0]], "float32")
    assert ops.convert_to_numpy(G.Greedy().choose(logits, None)).tolist() == [1, 0]
    weights = ops.convert_to_numpy(G.Greedy().probabilities(logits))
    assert weights.tolist() == [[0, 1, 0], [1, 0, 0]]


def chi_square(counts, weights):
    expected = counts.sum() * weights[weights > 0]
    return ((counts[weights > 0] - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("sampler", [G.Sample(temperature=1.5), G.Sample(top_k=4)], ids=str)
def test_draws_are_as_frequent_as_they_are_probable(sampler):
    """Beyond 37.6 (15.1) chi-square with 12 (3) degrees of freedom is once in 5,000 (560)."""
    number = 20_000
    uniform = G.inputs.draw_uniform(7, sampler, (1, number))[0][0]
    logits = np.broadcast_to(LOGITS[:1], (number, LOGITS.shape[1]))
    drawn = ops.convert_to_numpy(sampler.choose(logits, uniform))
    weights = ops.convert_to_numpy(sampler.probabilities(LOGITS[:1]))[0].astype("float64")
    counts = np.bincount(drawn, minlength=len(weights))
    assert not counts[weights == 0].any()
    assert chi_square(counts, weights) < (37.6 if sampler.top_k is None else 15.1)


def test_nothing_of_weight_zero_is_drawn():
    weights = np.array([[0.0, 0.25, 0.0, 0.75, 0.0]] * 4, "float32")
    uniform = np.array([0.0, 0.2499, 0.25, 1 - 2.0**-23], "float32")
    assert ops.convert_to_numpy(draw(weights, uniform)).tolist() == [1, 1, 3, 3]


def test_random_numbers_follow_their_seed():
    first, again = (G.inputs.draw_uniform(3, G.Greedy(), (4, 2))[0] for _ in range(2))
    assert np.array_equal(first, again)
    assert first.dtype == "float32" and (first >= 0).all() and (first < 1).all()
    assert not np.array_equal(first, G.inputs.draw_uniform(4, G.Greedy(), (4, 2))[0])
    assert np.array_equal(first, G.inputs.draw_uniform(None, G.Sample(seed=3), (4, 2))[0])
    keras.utils.set_random_seed(1)
    unseeded = [G.inputs.draw_uniform(None, G.Sample(), (4, 2))[0] for _ in range(2)]
    assert not np.array_equal(*unseeded)
    keras.utils.set_random_seed(1)
    assert np.array_equal(unseeded[0], G.inputs.draw_uniform(None, G.Sample(), (4, 2))[0])


@pytest.mark.parametrize("sampler", [G.Greedy(), G.Sample(0.5, 3, 0.9, 0.1, 7), G.Beam(4, 0.6, 2)])
def test_parts_come_back_from_their_config(sampler):
    assert G.samplers.get(keras.saving.serialize_keras_object(sampler)) == sampler
    assert G.samplers.get(type(sampler).__name__.lower() if sampler == G.Greedy() else sampler)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: G.Sample(temperature=0), r"Sample\(temperature=0\).*above 0"),
        (lambda: G.Sample(top_k=0), r"Sample\(top_k=0\)"),
        (lambda: G.Sample(top_p=1.5), r"Sample\(top_p=1.5\).*above 0 and of at most 1"),
        (lambda: G.Sample(min_p=-0.1), r"Sample\(min_p=-0.1\).*of at least 0"),
        (lambda: G.Sample(seed=-1), r"Sample\(seed=-1\)"),
        (lambda: G.Beam(0), r"Beam\(width=0\)"),
        (lambda: G.Beam(2, length_penalty=-1), r"Beam\(length_penalty=-1\)"),
        (lambda: G.Beam(2, num_return_sequences=3), "num_return_sequences=3.*larger width"),
        (lambda: G.samplers.get("beam"), "Beam needs width"),
        (lambda: G.samplers.get("best"), "Unknown sampler 'best'. Known: greedy, sample, beam"),
        (lambda: G.samplers.get(None), "sampler=None"),
    ],
)
def test_bad_samplers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("size", [1000, 50257])
def test_draw_never_picks_a_token_with_zero_weight(size):
    """Sums in parallel round apart: the highest may be reached where the weight is 0."""
    weights = np.random.default_rng(0).random((60, size), dtype="float32")
    weights[:, size // 2 :] = 0
    run = draw
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        run = tf.function(draw, jit_compile=True)
    late = np.full((60,), 1 - 2.0**-23, "float32")
    drawn = ops.convert_to_numpy(run(ops.convert_to_tensor(weights), ops.convert_to_tensor(late)))
    assert np.all(np.take_along_axis(weights, drawn[:, None], axis=1) > 0)


@pytest.mark.parametrize("temperature", [1e-300, 1e-20, 1e-3, 1e3, 1e9, 1e300])
@pytest.mark.parametrize("limits", [{}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}], ids=repr)
def test_no_temperature_allows_what_is_forbidden(temperature, limits):
    logits = np.array([[2.0, IMPOSSIBLE, 1.5, -40.0, IMPOSSIBLE], [-70, -71, -72, -73, -74]])
    sampler = ka.generation.Sample(temperature, **limits)
    weights = np.asarray(sampler.probabilities(logits.astype("float32")))
    assert np.all(weights[0, [1, 4]] == 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    if temperature <= 1e-3:
        np.testing.assert_array_equal(weights.argmax(axis=1), 0)
        np.testing.assert_allclose(weights[:, 0], 1, atol=1e-6)
    if temperature >= 1e9 and not limits:
        np.testing.assert_allclose(weights[0, [0, 2, 3]], 1 / 3, atol=1e-5)
