"""Second-order gradients of recomputed functions and of custom gradients."""

import pathlib
import re

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core.recompute import recompute
from keras_attention.scores import additive_tensorflow
from tests import gradients
from tests.normalizers import definition

SOURCE = pathlib.Path(ka.__file__).parent
STEP = 1e-3


def assert_second_order(function, *inputs, run=lambda f: f, atol=2e-2):
    """Compare the second-order gradient of a scalar `function` along a line with differences."""
    random = np.random.default_rng(5)
    inputs = [np.asarray(x, "float32") for x in inputs]
    lines = [random.normal(size=x.shape).astype("float32") for x in inputs]

    def first(*inputs):
        return gradients.value_and_gradients(function, inputs)[1]

    def along_lines(*inputs):
        pairs = zip(first(*inputs), lines, strict=True)
        return sum(ops.sum(gradient * line) for gradient, line in pairs)

    def second(*inputs):
        return gradients.value_and_gradients(along_lines, inputs)[1]

    def at(step):
        moved = (x + np.float32(step) * line for x, line in zip(inputs, lines, strict=True))
        return [np.asarray(each, "float64") for each in run(first)(*moved)]

    for actual, after, before in zip(run(second)(*inputs), at(STEP), at(-STEP), strict=True):
        expected = (after - before) / (2 * STEP)
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol * np.abs(expected).max())


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


SCORES = {
    **{name: ka.scores.get(name) for name in ka.scores.NAMES},
    "additive in slices": ka.scores.Additive(12),
    "concat in slices": ka.scores.Concat(12, activation="sigmoid"),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_have_second_order_gradients(name):
    score, upstream = SCORES[name], draw(2, 3, 5, 7, seed=1)
    inputs = draw(2, 5, 3, 4), draw(2, 7, 3, 4, seed=2)
    score(*inputs)
    assert_second_order(lambda q, k: ops.sum(ops.sin(score(q, k)) * upstream), *inputs)


@pytest.mark.parametrize("score", [ka.scores.Additive(4), ka.scores.Concat(4)], ids=repr)
def test_scores_of_one_query_have_second_order_gradients(score):
    inputs, upstream = (draw(2, 1, 3, 4), draw(2, 7, 3, 4, seed=2)), draw(2, 3, 1, 7, seed=1)
    score(*inputs)
    assert_second_order(
        lambda q, k: ops.sum(ops.sin(score.match(q, score.prepare(k))) * upstream), *inputs
    )


@pytest.mark.parametrize("name", definition.EXAMPLES)
def test_normalizers_have_second_order_gradients(name):
    normalizer, upstream = definition.EXAMPLES[name][0], draw(2, 3, 7, seed=1)
    scores = definition.scores(scale=1.0)[0, :2, :3]
    assert_second_order(lambda x: ops.sum(ops.sin(3 * normalizer(x)) * upstream), scores)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.5])
def test_entmax_has_third_order_gradients(alpha):
    normalizer, upstream, line = (
        ka.normalizers.Entmax(alpha),
        draw(4, 7, seed=1),
        draw(4, 7, seed=3),
    )

    def along_line(x):
        def loss(x):
            return ops.sum(ops.sin(3 * normalizer(x)) * upstream)

        return ops.sum(gradients.value_and_gradients(loss, [x])[1][0] * line)

    assert_second_order(along_line, draw(4, 7))


def test_entmax_has_finite_second_order_gradients_where_scores_are_far_apart():
    scores = np.array([[0, -1e4, 1e4, 3, 1e-6], [5, 5, 5, 5, 5]], "float32")
    for alpha in (1.05, 1.5, 3.0):
        normalizer = ka.normalizers.Entmax(alpha)

        def first(x, normalizer=normalizer):
            compute = lambda x: ops.sum(ops.sin(normalizer(x)))  # noqa: E731
            return ops.sum(ops.square(gradients.value_and_gradients(compute, [x])[1][0]))

        _, (actual,) = gradients.value_and_gradients(first, [scores])
        assert np.all(np.isfinite(actual))


@pytest.mark.slow
def test_compiled_additive_scores_have_second_order_gradients(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(additive_tensorflow, "LEAST_TANHS", 0)
    score, upstream = ka.scores.Additive(12), draw(2, 3, 9, 7, seed=1)
    inputs = draw(2, 9, 3, 4), draw(2, 7, 3, 4, seed=2)
    score(*inputs)
    assert_second_order(
        lambda q, k: ops.sum(ops.sin(score(q, k)) * upstream), *inputs, run=tf.function
    )


def test_recompute_does_not_change_gradients():
    calls = []

    def compute(x, scale):
        calls.append(1)
        return ops.sin(x * scale), ops.cast(scale, "int32")

    again = recompute(compute)
    inputs = draw(3, 4), draw(4, seed=1)
    assert_second_order(lambda x, scale: ops.sum(again(x, scale)[0] ** 3), *inputs)
    calls.clear()
    gradients.value_and_gradients(lambda x: ops.sum(again(x, inputs[1])[0]), inputs[:1])
    assert len(calls) == 2


@pytest.mark.slow
def test_recomputed_blocks_have_second_order_gradients():
    x, actual = draw(2, 5, 12), []
    for remat in (False, True):
        keras.utils.set_random_seed(0)
        block = ka.blocks.EncoderBlock(
            ka.attention.MultiHeadAttention(3, 4), ka.blocks.FeedForward(10), remat=remat
        )
        block(x)
        weights = block.trainable_variables

        def loss(block=block):
            return ops.sum(ops.sin(block(x, training=True)))

        def penalty(loss=loss, weights=weights):
            first = gradients.value_and_gradients(loss, variables=weights)[1]
            return sum(ops.sum(ops.square(each)) for each in first)

        actual.append(gradients.value_and_gradients(penalty, variables=weights)[1])
    for plain, again in zip(*actual, strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-4, atol=1e-2)


def test_second_order_gradients_of_chunked_logits_are_refused():
    size = dict(num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
    model = ka.models.causal_language_model(7, **size)
    fitted = ka.training.ChunkedLogits(model, chunk_size=4)
    fitted.compile("sgd", ka.training.MaskedSparseCategoricalCrossentropy())
    ids = np.array([[1, 2, 3, 4, 5]])
    weights = fitted.trainable_variables

    def loss():
        return fitted.compute_loss(y=ids, y_pred=fitted(ids), training=True)

    def penalty():
        first = gradients.value_and_gradients(loss, variables=weights)[1]
        return sum(ops.sum(ops.square(each)) for each in first)

    assert all(np.any(x) for x in gradients.value_and_gradients(loss, variables=weights)[1])
    with pytest.raises(
        NotImplementedError, match="train the model that ChunkedLogits was made from"
    ):
        gradients.value_and_gradients(penalty, variables=weights)


def test_only_recompute_calls_keras_remat():
    """TensorFlow's has no second-order gradients."""
    calls = re.compile(r"(keras|ops)\.remat\(|@keras\.remat|recompute_grad\(")
    actual = [path.name for path in SOURCE.rglob("*.py") if calls.search(path.read_text())]
    assert actual == ["recompute.py"]
