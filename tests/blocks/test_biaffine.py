"""Biaffine scores by the equations of Dozat and Manning (2017), pair by pair."""

import keras
import numpy as np
import pytest

import keras_attention as ka

random = np.random.default_rng(0)
B, T, D, H = 2, 5, 7, 3
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])


def make(num_outputs=None):
    layer = ka.blocks.Biaffine(H, num_outputs)
    layer.build((None, None, D))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def by_definition(layer, x):
    """Compute the scores (T, T + 1, N) of one sentence (T, D)."""
    weights = {w.path.split("/", 1)[1]: keras.ops.convert_to_numpy(w) for w in layer.weights}

    def dense(name, vector):
        return np.maximum(vector @ weights[f"{name}/kernel"] + weights[f"{name}/bias"], 0)

    rooted = [weights["root"][0, 0], *x]
    number = layer.num_outputs or 1
    scores = np.zeros((len(x), len(x) + 1, number))
    for i, word in enumerate(x):
        dependent = [*dense("dependent", word), 1.0]
        for j, other in enumerate(rooted):
            head = dense("head", other)
            head = head if layer.num_outputs is None else [*head, 1.0]
            for n in range(number):
                scores[i, j, n] = dependent @ weights["kernel"][n] @ head
    return scores


@pytest.mark.parametrize("num_outputs", [None, 2])
def test_by_definition(num_outputs):
    layer = make(num_outputs)
    expected = np.stack([by_definition(layer, x) for x in X])
    expected = expected[..., 0] if num_outputs is None else expected
    np.testing.assert_allclose(layer(X), expected, rtol=1e-4, atol=1e-4)


def test_equals_the_bilinear_score_of_attention():
    """Compare with vectors that end in 1, for the affine terms."""
    layer = make(2)
    score = ka.scores.Bilinear()
    rooted = np.concatenate([np.tile(layer.root, (B, 1, 1)), X], axis=1)
    heads = [layer._dependent(X), layer._head(rooted)]
    query, key = (
        np.tile(np.pad(x, [(0, 0), (0, 0), (0, 1)], constant_values=1)[:, :, None], (1, 1, 2, 1))
        for x in heads
    )
    score.build(query.shape, key.shape)
    score.kernel.assign(layer.kernel)
    expected = np.transpose(score(query, key), (0, 2, 3, 1))
    np.testing.assert_allclose(layer(X), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_outputs", [None, 2])
def test_padding_has_low_scores_and_changes_no_other(num_outputs):
    layer = make(num_outputs)
    masked, short = np.asarray(layer(X, mask=PADDING)), np.asarray(layer(X[:, :3]))
    np.testing.assert_allclose(masked[0, :3, :4], short[0], rtol=1e-5, atol=1e-5)
    assert (masked[0, :, 4:] < -5e4).all() and (masked[1] > -1e3).all()


@pytest.mark.parametrize(
    "arguments, message",
    [({"hidden_dim": 0}, "hidden_dim=0"), ({"hidden_dim": 4, "num_outputs": 0}, "num_outputs=0")],
)
def test_refuses_sizes_that_are_not_whole_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.Biaffine(**arguments)
