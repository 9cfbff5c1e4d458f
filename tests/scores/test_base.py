"""What all scores share."""

import keras
import numpy as np
import pytest

from keras_attention import scores
from tests.grids import quick
from tests.scores import definition


def test_who_folds():
    folding = {name for name in scores.NAMES if scores.get(name).fold is not None}
    assert folding == {"dot", "scaled_dot", "cosine", "bilinear"}


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "squared_distance"])
def test_different_widths_are_refused(name):
    query, key = definition.tensors(key_width=13)
    with pytest.raises(ValueError, match=r"query has size 11 and the key 13.*Bilinear"):
        scores.get(name)(query, key)


@pytest.mark.parametrize("name", scores.NAMES)
def test_other_than_four_axes_are_refused(name):
    query = np.zeros((2, 5, 11), "float32")
    with pytest.raises(ValueError, match=r"\(2, 5, 11\).*Split the heads"):
        scores.get(name)(query, query)


@pytest.mark.parametrize("name", scores.NAMES)
def test_grouped_keys_are_left_to_the_kernels(name):
    query, key = definition.tensors(key_heads=1)
    with pytest.raises(ValueError, match=r"received 3 and 1.*attend\(\)"):
        scores.get(name)(query, key)


@pytest.mark.parametrize("name", scores.NAMES)
def test_gradients_reach_inputs_and_weights(name):
    query, key = definition.tensors()
    score = definition.with_weights(scores.get(name), query, key)
    weights = getattr(score, "weights", [])
    random = np.random.default_rng(2).normal(size=(2, 3, 5, 7)).astype("float32")
    _, found = definition.gradients(
        lambda: keras.ops.sum(score(query, key) * random), query, key, *weights
    )
    for gradient in found:
        gradient = definition.array(gradient)
        assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)


@pytest.mark.parametrize("heads", quick([1, 3], 3))
@pytest.mark.parametrize("name", scores.NAMES)
def test_one_query_meets_prepared_keys(name, heads):
    """As a recurrent decoder asks: `prepare` once, then `match` query by query."""
    query, key = (x[:, :, :heads] for x in definition.tensors())
    score = definition.with_weights(scores.get(name), query, key)
    prepared = score.prepare(key)
    assert prepared.shape[:3] == key.shape[:3]
    random = np.random.default_rng(2).normal(size=(2, heads, 5, 7)).astype("float32")

    def one_by_one():
        prepared = score.prepare(key)
        found = [score.match(query[:, i : i + 1], prepared) for i in range(query.shape[1])]
        return keras.ops.concatenate(found, axis=2)

    np.testing.assert_allclose(one_by_one(), definition.array(score(query, key)), atol=1e-5)
    sources = [query, key, *getattr(score, "weights", [])]
    _, ours = definition.gradients(lambda: keras.ops.sum(one_by_one() * random), *sources)
    _, whole = definition.gradients(lambda: keras.ops.sum(score(query, key) * random), *sources)
    for a, b in zip(ours, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_a_mask_on_the_query_is_not_handed_to_the_scores():
    """Its axes would be read as those of the scores."""
    inputs = keras.Input((None, 2, 11))
    inputs._keras_mask = keras.Input((None,), dtype="bool")
    assert getattr(scores.Additive()(inputs, inputs), "_keras_mask", None) is None


@pytest.mark.parametrize("name", scores.NAMES)
def test_scores_of_whole_numbers_are_those_of_floats(name):
    query, key = (np.round(2 * x).astype("int32") for x in definition.tensors())
    score = scores.get(name)
    expected = score(query.astype("float32"), key.astype("float32"))
    np.testing.assert_allclose(np.asarray(score(query, key), "float32"), expected, rtol=1e-5)
