import math

import numpy as np
import pytest
from keras import ops

from keras_attention import scores
from tests import litert
from tests.scores import definition
from tests.scores.definition import H, N, S, T


def rule_of(score):
    """Return the rule of equation 2 of Swin Transformer V2, with the bound of its scale."""
    log_scale = definition.array(score.log_scale) if score.learned else [math.log(score.scale)] * N

    def rule(q, k, n):
        scale = np.exp(min(log_scale[n], math.log(score.max_scale)))
        return scale * q @ k / np.linalg.norm(q) / np.linalg.norm(k)

    return rule


@pytest.mark.parametrize(
    "options", [{}, {"max_scale": 1.2, "scale": 1.1}, {"learned": False, "scale": 7.0}], ids=str
)
def test_cosine_equals_the_definition(options):
    definition.assert_is(lambda: scores.Cosine(**options), rule_of)


@pytest.mark.parametrize("learned", [True, False])
def test_fold_equals_the_call(learned):
    definition.assert_fold_is_call(scores.Cosine(learned=learned))


def test_the_scale_starts_at_its_argument_and_each_head_learns_one():
    score = scores.Cosine(scale=3.0)
    score(*definition.tensors())
    np.testing.assert_allclose(np.exp(score.log_scale), [3.0] * N, rtol=1e-6)
    assert scores.Cosine(learned=False).weights == []


def test_the_scale_never_exceeds_its_bound():
    query, key = definition.tensors()
    score = scores.Cosine()
    score(query, key)
    score.log_scale.assign([10.0] * N)
    assert np.abs(score(query, query)).max() == pytest.approx(100, rel=1e-5)


@pytest.mark.parametrize("dtype", definition.DTYPES)
def test_zeros_score_zero_with_finite_gradient(dtype):
    """Use zeros, as in padding. An epsilon that rounds to zero in float16 would give NaN."""
    query, key = definition.tensors(dtype=dtype)
    zeros = ops.zeros_like(key)
    with definition.Policy(dtype):
        score = definition.with_weights(scores.Cosine(), query, key)
    assert np.all(definition.array(score(query, zeros)) == 0)
    assert np.all(definition.array(score(zeros, zeros)) == 0)
    _, gradients = definition.gradients(lambda: ops.sum(score(query, zeros)), query, zeros)
    assert all(np.isfinite(definition.array(g)).all() for g in gradients)


@pytest.mark.slow
def test_short_vectors_give_the_same_scores_in_litert():
    """Find no L2_NORMALIZATION, which the converter makes from a division, with another epsilon."""
    score = scores.Cosine()
    query, key = (x.numpy() for x in definition.tensors())
    score(query, key)
    values = [w.value for w in score.weights]
    for scale in (1.0, 1e-4, 0.0):
        arrays = {"query": query, "key": scale * key}
        litert.assert_converts(
            lambda query, key: {"scores": score(query, key)}, arrays, 2, values, atol=1e-5
        )


def test_the_symbolic_shape():
    assert scores.Cosine().compute_output_shape((None, T, N, H), (None, S, N, H)) == (None, N, T, S)


def test_errors():
    with pytest.raises(ValueError, match=r"Cosine\(epsilon=1e-12\).*2\*\*-12"):
        scores.Cosine(epsilon=1e-12)
    with pytest.raises(ValueError, match=r"Cosine\(scale=200.0\).*max_scale=100.0"):
        scores.Cosine(scale=200.0)
    with pytest.raises(ValueError, match=r"Cosine\(scale=-1\)"):
        scores.Cosine(scale=-1, learned=False)
    with pytest.raises(ValueError, match=r"Cosine\(learned='yes'\)"):
        scores.Cosine(learned="yes")
    assert scores.Cosine(scale=200.0, learned=False).scale == 200.0


@pytest.mark.parametrize("make", [scores.Cosine, scores.Bilinear])
def test_a_kernel_may_fold_a_score_that_is_not_built(make):
    query, key = definition.tensors()
    score = make()
    folded_query, folded_key, scale = score.fold(query, key)
    products = ops.einsum("btnh,bsnh->bnts", folded_query, folded_key)
    result = ops.convert_to_numpy(products) * scale
    np.testing.assert_allclose(result, ops.convert_to_numpy(score(query, key)), atol=1e-5)
