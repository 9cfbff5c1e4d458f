"""`score_retrieval`, compared with loops that sort all documents."""

import math

import numpy as np
import pytest

import keras_attention as ka


def define(scores, relevant):
    """Compute all scores from the sorted documents of each query."""
    results = {"recall@1": 0.0, "recall@5": 0.0, "mrr": 0.0, "ndcg@10": 0.0}
    for row, right in zip(scores, relevant, strict=True):
        order = sorted(range(len(row)), key=lambda i: (-row[i], i))
        for k in (1, 5):
            results[f"recall@{k}"] += sum(i in right for i in order[:k]) / len(set(right))
        for rank, i in enumerate(order, start=1):
            if i in right:
                results["mrr"] += 1 / rank
                break
        gain = sum(1 / math.log2(1 + r) for r, i in enumerate(order[:10], start=1) if i in right)
        best = sum(1 / math.log2(1 + r) for r in range(1, min(10, len(set(right))) + 1))
        results["ndcg@10"] += gain / best
    return {name: total / len(relevant) for name, total in results.items()}


@pytest.mark.parametrize("levels", [3, 1000])
def test_scores_follow_their_definitions(levels):
    """Few levels produce many documents with equal scores."""
    random = np.random.default_rng(levels)
    scores = random.integers(0, levels, (40, 30)) / levels
    relevant = [random.choice(30, random.integers(1, 15), replace=False) for _ in scores]
    expected = define(scores.tolist(), [right.tolist() for right in relevant])
    actual = ka.training.score_retrieval(scores, relevant)
    assert list(actual) == list(expected)
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, abs=1e-9), name
    assert 0.1 < expected["mrr"] < 1


def test_rows_may_be_computed_one_after_another():
    scores = np.random.default_rng(0).normal(size=(5, 8))
    relevant = [[k] for k in range(5)]
    expected = ka.training.score_retrieval(scores, relevant)
    assert ka.training.score_retrieval(iter(scores), relevant) == expected
    assert ka.training.score_retrieval(scores, [[k, k] for k in range(5)]) == expected
    assert ka.training.score_retrieval([], []) == {}


@pytest.mark.parametrize("relevant", [[], [3], [-1]])
def test_missing_documents_are_refused(relevant):
    with pytest.raises(ValueError, match="query 2 has the relevant documents .*from 0 to 2"):
        ka.training.score_retrieval(np.eye(3)[:2], [[0], relevant])
