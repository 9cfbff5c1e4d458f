"""`rollout` and `relevance`, against their definitions."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import scope

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
TOKENS = np.array([[5, 7, 11, 2], [3, 4, 0, 0]])


def draw_maps(layers=3, shape=(2, 4, 5, 5)):
    rng = np.random.default_rng(0)
    maps = rng.random((layers, *shape))
    return list(maps / maps.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("heads", ["mean", "max", "min"])
def test_rollout_is_the_sum_over_all_paths(heads):
    """Sum the products of weights over every path through three layers, for one example."""
    maps = draw_maps(shape=(1, 4, 3, 3))
    mixed = []
    for weights in maps:
        layer = getattr(weights[0], heads)(axis=0) + np.eye(3)
        mixed.append([row / sum(row) for row in layer])
    expected = np.zeros((3, 3))
    for i, j, k, inputs in np.ndindex(3, 3, 3, 3):
        expected[i, inputs] += mixed[2][i][j] * mixed[1][j][k] * mixed[0][k][inputs]
    np.testing.assert_allclose(ka.visualization.rollout(maps, heads)[0], expected, atol=1e-12)


def test_shares_of_a_rollout_sum_to_one():
    shares = ka.visualization.rollout(dict(enumerate(draw_maps())))
    assert shares.shape == (2, 5, 5)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-12)


def test_rollout_passes_through_a_pooling():
    first, pooling = draw_maps(1, (1, 2, 3, 3))[0], draw_maps(1, (1, 2, 1, 3))[0]
    expected = pooling.mean(axis=1) @ ka.visualization.rollout([first])
    np.testing.assert_allclose(ka.visualization.rollout([first, pooling]), expected)
    with pytest.raises(ValueError, match=r"map 0 \(1, 2, 1, 3\), map 1 \(1, 2, 3, 3\)"):
        ka.visualization.rollout([pooling, first])


def test_rollout_names_maps_that_do_not_fit():
    cross = np.ones((1, 2, 3, 4))
    with pytest.raises(ValueError, match=r"cross \(1, 2, 3, 4\): expected weights \(B, N, T, T\)"):
        ka.visualization.rollout({"self": np.ones((1, 2, 3, 3)), "cross": cross})
    with pytest.raises(ValueError, match="rollout got no maps"):
        ka.visualization.rollout([])
    with pytest.raises(ValueError, match=r"heads='sum'\): expected one of mean, max, min"):
        ka.visualization.rollout(draw_maps(), heads="sum")


class Weigh(keras.layers.Layer):
    """Multiplies given weights (B, N, T, T) with the input (B, T, D), and records them."""

    def __init__(self, weights):
        super().__init__()
        self.given = weights

    def call(self, x):
        weights = ops.convert_to_tensor(self.given, "float32")
        change = scope.change_of_weights(self)
        scope.record_weights(self, weights)
        weights = weights if change is None else change(weights)
        return x + ops.mean(weights @ ops.expand_dims(x, axis=1), axis=1)


def weigh_twice():
    """Return a model of two layers, their weights (B, N, T, T), an input and a last kernel."""
    rng = np.random.default_rng(1)
    first, second = draw_maps(2, (1, 2, 3, 3))
    x, kernel = rng.normal(size=(1, 3, 4)), rng.normal(size=(4, 2))
    tokens = keras.Input((3, 4))
    last = keras.layers.Dense(2, use_bias=False)
    model = keras.Model(tokens, last(Weigh(second)(Weigh(first)(tokens))[:, 0]))
    last.set_weights([kernel])
    return model, (first, second), x, kernel


def test_relevance_equals_the_definition():
    """Remove each key from its row, with gradients by finite differences, in float64."""
    model, maps, x, kernel = weigh_twice()

    def output(first, second):
        middle = x + np.mean(first @ x[:, None], axis=1)
        return ((middle + np.mean(second @ middle[:, None], axis=1))[:, 0] @ kernel)[0, 1]

    gradients = [np.zeros_like(each) for each in maps]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        between = [share * each + (1 - share) / 3 for each in maps]
        for layer, index in itertools.product(range(2), np.ndindex(maps[0].shape)):
            moved = [np.array(each) for each in between]
            moved[layer][index] += 1  # the output is linear in each layer
            gradients[layer][index] += (output(*moved) - output(*between)) / 5
    expected = np.eye(3)
    for weights, gradient in zip(maps, gradients, strict=True):
        raising = np.zeros((3, 3))
        for batch, head, query, key in np.ndindex(weights.shape):
            row = weights[batch, head, query]
            without = np.where(np.arange(3) == key, 0, row)
            fall = (row - without / without.sum()) @ gradient[batch, head, query]
            raising[query, key] += max(fall, 0) / 2
        sums = raising.sum(axis=1, keepdims=True)
        expected = expected + raising / np.where(sums, sums, 1) @ expected
    scores = ka.visualization.relevance(model, x.astype("float32"), target=1)
    np.testing.assert_allclose(scores, [expected], atol=1e-6)


@pytest.mark.parametrize("value, expected", [(2.0, 4.0), (-2.0, 1.0)])
def test_relevance_of_an_only_token(value, expected):
    """Without the only key, a row of attention is 0, so the output falls by A · G."""
    token = keras.Input((1, 1))
    only = np.ones((1, 1, 1, 1))
    model = keras.Model(token, Weigh(only)(Weigh(only)(token))[:, 0])
    scores = ka.visualization.relevance(model, np.full((1, 1, 1), value, "float32"), target=0)
    np.testing.assert_allclose(scores, [[[expected]]])


def test_relevance_of_a_class_a_token_and_some_layers():
    classifier = ka.models.text_classifier(20, 3, **SIZE)
    scores = ka.visualization.relevance(classifier, TOKENS)
    assert scores.shape == (2, 4, 4) and np.all(scores >= np.eye(4) - 1e-9)
    best = np.argmax(ops.convert_to_numpy(classifier(TOKENS)), axis=-1)
    for row, target in enumerate(best):
        of_class = ka.visualization.relevance(classifier, TOKENS, int(target))
        np.testing.assert_allclose(scores[row], of_class[row], atol=1e-6)
    np.testing.assert_allclose(scores[1, :2, 2:], 0)  # padding
    labeler = ka.models.sequence_labeler(20, 3, **SIZE)
    chosen = ["block_1/attention"]
    of_token = ka.visualization.relevance(labeler, TOKENS, lambda tags: tags[:, 1, 0], chosen)
    np.testing.assert_allclose(of_token[:, 0], [[1, 0, 0, 0]] * 2)  # the tag of position 1
    assert np.any(of_token[:, 1] != np.eye(4)[1])


def test_relevance_passes_through_a_pooling():
    classifier = ka.models.text_classifier(20, 3, pooling="attention", **SIZE)
    scores = ka.visualization.relevance(classifier, TOKENS)
    with ka.visualization.record_attention(classifier) as maps:
        classifier(TOKENS)
    assert [weights.shape[-2] for weights in maps.values()] == [4, 4, 1]
    assert scores.shape == (2, 1, 4) and np.all(scores >= 0) and np.all(scores[1, :, 2:] == 0)


def test_relevance_of_a_frozen_model_is_the_same():
    classifier = ka.models.text_classifier(20, 3, **SIZE)
    scores = ka.visualization.relevance(classifier, TOKENS, 1)
    classifier.trainable = False
    np.testing.assert_allclose(ka.visualization.relevance(classifier, TOKENS, 1), scores)
    assert np.any(scores != np.eye(4))


def test_relevance_says_which_target_it_expects():
    labeler = ka.models.sequence_labeler(20, 3, **SIZE)
    with pytest.raises(ValueError, match=r"\(2, 4, 3\), expected \(B, L\). Pass a function"):
        ka.visualization.relevance(labeler, TOKENS, target=1)
    classifier = ka.models.text_classifier(20, 3, **SIZE)
    with pytest.raises(ValueError, match="has 3 outputs. Expected an index from 0 to 2"):
        ka.visualization.relevance(classifier, TOKENS, target=3)
    with pytest.raises(KeyError, match="No attention was recorded under 'other'"):
        ka.visualization.relevance(classifier, TOKENS, layers=["other"])


class Even(keras.layers.Layer):
    """Takes the mean of all tokens, and records equal weights."""

    def call(self, x):
        scope.record_weights(self, ops.ones((1, 1, 3, 3)) / 3)
        return ops.mean(x, axis=1)


def test_relevance_names_layers_that_do_not_use_their_weights():
    tokens = keras.Input((3, 4))
    model = keras.Model(tokens, Even(name="even")(tokens))
    with pytest.raises(ValueError, match="cannot differentiate the weights of even: this kind"):
        ka.visualization.relevance(model, np.ones((1, 3, 4), "float32"), target=1)


def test_rollout_of_an_encoder_decoder_is_that_of_one_long_sequence():
    """Put the weights into blocks of matrices over the source and the target together."""
    encoder, own, cross = (
        draw_maps(count, shape)
        for count, shape in ((1, (2, 4, 5, 5)), (2, (2, 3, 4, 4)), (2, (2, 2, 4, 5)))
    )
    target = np.s_[..., 5:, 5:], np.s_[..., 5:, :5]
    long = [np.zeros((2, 1, 9, 9)) for _ in range(5)]
    long[0][..., :5, :5] = encoder[0].mean(axis=1, keepdims=True)
    maps = {"encoder_block_0/attention": encoder[0]}
    for k in range(2):
        maps[f"decoder_block_{k}/attention"] = own[k]
        maps[f"decoder_block_{k}/cross_attention"] = cross[k]
        long[1 + 2 * k][target[0]] = own[k].mean(axis=1, keepdims=True)
        long[2 + 2 * k][target[1]] = cross[k].mean(axis=1, keepdims=True)
    shares = ka.visualization.rollout(maps)
    assert shares.shape == (2, 4, 9)
    np.testing.assert_allclose(shares, ka.visualization.rollout(long)[:, 5:])


def test_relevance_through_an_encoder_decoder():
    model = ka.models.seq2seq_transformer(20, 20, **SIZE | {"num_layers": 1})
    inputs = {"source_ids": TOKENS, "target_ids": np.array([[1, 6, 9], [1, 3, 8]])}
    scores = ka.visualization.relevance(model, inputs, lambda logits: logits[:, 1, 5])
    assert scores.shape == (2, 3, 7) and np.all(scores >= 0)
    assert np.all(scores[0, 1, :4] > 0) and np.all(scores[1, :, 2:4] == 0)  # no padding
    np.testing.assert_allclose(scores[:, 0, 5:], 0)  # a token does not see later tokens
    last = ["decoder_block_0/cross_attention"]
    alone = ka.visualization.relevance(model, inputs, lambda logits: logits[:, 1, 5], last)
    np.testing.assert_allclose(alone[:, :, 4:], [np.eye(3)] * 2)
    np.testing.assert_allclose(alone[:, [0, 2], :4], 0)  # the output is that of position 1
    assert np.any(alone[:, 1, :4] > 0)
