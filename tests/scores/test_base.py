"""Tests of all scores."""

import keras
import numpy as np
import pytest

from keras_attention import scores
from tests.grids import quick
from tests.scores import definition


def test_only_dot_products_fold():
    folding = {name for name in scores.NAMES if scores.get(name).fold is not None}
    assert folding == {"dot", "scaled_dot", "cosine", "bilinear"}


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "squared_distance"])
def test_different_widths_are_refused(name):
    query, key = definition.tensors(key_width=13)
    with pytest.raises(ValueError, match=r"query has size 11 and the key 13.*Bilinear"):
        scores.get(name)(query, key)


@pytest.mark.parametrize("name", scores.NAMES)
def test_tensors_without_four_axes_are_refused(name):
    query = np.zeros((2, 5, 11), "float32")
    with pytest.raises(ValueError, match=r"\(2, 5, 11\).*Split the heads"):
        scores.get(name)(query, query)


@pytest.mark.parametrize("name", scores.NAMES)
def test_grouped_keys_are_refused_outside_of_kernels(name):
    query, key = definition.tensors(key_heads=1)
    with pytest.raises(ValueError, match=r"received 1 and 3.*attend\(\)"):
        scores.get(name)(query, key)


@pytest.mark.parametrize("name", scores.NAMES)
def test_gradients_reach_inputs_and_weights(name):
    query, key = definition.tensors()
    score = definition.with_weights(scores.get(name), query, key)
    weights = getattr(score, "weights", [])
    random = np.random.default_rng(2).normal(size=(2, 3, 5, 7)).astype("float32")
    _, gradients = definition.gradients(
        lambda: keras.ops.sum(score(query, key) * random), query, key, *weights
    )
    for gradient in gradients:
        gradient = definition.array(gradient)
        assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)


@pytest.mark.parametrize("heads", quick([1, 3], 3))
@pytest.mark.parametrize("name", scores.NAMES)
def test_matching_prepared_keys_equals_the_score(name, heads):
    """Call `prepare` once and `match` for each query, as a recurrent decoder does."""
    query, key = (x[:, :, :heads] for x in definition.tensors())
    score = definition.with_weights(scores.get(name), query, key)
    prepared = score.prepare(key)
    assert prepared.shape[:3] == key.shape[:3]
    random = np.random.default_rng(2).normal(size=(2, heads, 5, 7)).astype("float32")

    def one_by_one():
        prepared = score.prepare(key)
        results = [score.match(query[:, i : i + 1], prepared) for i in range(query.shape[1])]
        return keras.ops.concatenate(results, axis=2)

    np.testing.assert_allclose(one_by_one(), definition.array(score(query, key)), atol=1e-5)
    sources = [query, key, *getattr(score, "weights", [])]
    _, ours = definition.gradients(lambda: keras.ops.sum(one_by_one() * random), *sources)
    _, whole = definition.gradients(lambda: keras.ops.sum(score(query, key) * random), *sources)
    for a, b in zip(ours, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_scores_do_not_carry_the_mask_of_the_query():
    inputs = keras.Input((None, 2, 11))
    inputs._keras_mask = keras.Input((None,), dtype="bool")
    assert getattr(scores.Additive()(inputs, inputs), "_keras_mask", None) is None


@pytest.mark.parametrize("name", scores.NAMES)
def test_scores_of_whole_numbers_equal_those_of_floats(name):
    query, key = (np.round(2 * x).astype("int32") for x in definition.tensors())
    score = scores.get(name)
    expected = score(query.astype("float32"), key.astype("float32"))
    np.testing.assert_allclose(np.asarray(score(query, key), "float32"), expected, rtol=1e-5)
