"""`score_retrieval`: recall, mean reciprocal rank and nDCG of search results."""

import numpy as np

RECALLS, GAINS = (1, 5), 10  # the ranks of recall@k, and of nDCG@k


def score_retrieval(scores, relevant):
    """Compute scores of search results, each the mean over queries.

    The results of a query are all documents, sorted by decreasing score. Documents with equal
    scores keep their order. A document is relevant or not.

    Args:
        scores: array (Q, C), or an iterable of Q rows, the score of each of C documents for each of
            Q queries.
        relevant: list of Q lists of ints, the indices of the relevant documents of each query, at
            least one.

    Returns:
        A dict of floats:
            - `"recall@1"` and `"recall@5"`: the share of the relevant documents that are among the
              first k.
            - `"mrr"`: the mean of 1 / rank of the first relevant document.
            - `"ndcg@10"`: the sum of 1 / log2(1 + rank) over the relevant documents among the first
              10, divided by its largest possible value.

        {} without queries.

    Raises:
        ValueError: a query has no relevant document, or an index is out of range.

    ```python
    import keras_attention as ka

    scores = ka.training.score_retrieval([[0.2, 0.9, 0.1], [0.3, 0.2, 0.1]], [[0], [0]])
    assert scores["recall@1"] == 0.5 and scores["recall@5"] == 1.0 and scores["mrr"] == 0.75
    ```
    """
    rows = []
    for number, (row, indices) in enumerate(zip(scores, relevant, strict=True), start=1):
        row, indices = np.asarray(row), np.unique(np.asarray(list(indices), "int64"))
        if not len(indices) or indices[0] < 0 or indices[-1] >= len(row):
            raise ValueError(
                f"score_retrieval: query {number} has the relevant documents {indices.tolist()}: "
                f"expected one or more indices from 0 to {len(row) - 1}."
            )
        above = (row > row[indices][:, None]).sum(axis=1)
        equal = [np.count_nonzero(row[:i] == row[i]) for i in indices]  # the first wins
        ranks = 1 + above + np.array(equal)
        recalls = [(ranks <= k).mean() for k in RECALLS]
        gains = (1 / np.log2(1 + ranks[ranks <= GAINS])).sum()
        best = (1 / np.log2(1 + np.arange(1, min(GAINS, len(ranks)) + 1))).sum()
        rows.append((*recalls, 1 / ranks.min(), gains / best))
    names = (*(f"recall@{k}" for k in RECALLS), "mrr", f"ndcg@{GAINS}")
    means = np.mean(rows, axis=0).tolist() if rows else ()
    return dict(zip(names, means, strict=False))
