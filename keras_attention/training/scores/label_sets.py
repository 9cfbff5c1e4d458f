"""Scores and thresholds for examples with any number of labels, computed with NumPy."""

import numpy as np


def score_label_sets(labels, predicted):
    """Return three F1 scores for examples with any number of labels, equal to scikit-learn's.

    Args:
        labels: zeros and ones (n, L), the true labels of n examples.
        predicted: zeros and ones (n, L), the predicted labels.

    Returns:
        A dict: `"macro_f1"` is the mean over labels, `"micro_f1"` is the F1 of all n · L decisions
        together, and `"sample_f1"` is the mean over examples. An F1 without any true or predicted
        label is 0.

    Raises:
        ValueError: the two arrays are empty or differ in shape.

    ```python
    import keras_attention as ka

    scores = ka.training.score_label_sets([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    assert {name: round(score, 3) for name, score in scores.items()} == {
        "macro_f1": 0.833,
        "micro_f1": 0.8,
        "sample_f1": 0.833,
    }
    ```
    """
    labels, predicted = (np.asarray(array) > 0 for array in (labels, predicted))
    if labels.shape != predicted.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            f"labels of shape {labels.shape} and predictions of shape {predicted.shape}: expected "
            "both (examples, labels)."
        )
    right, total = labels & predicted, labels.astype("int64") + predicted
    macro = _compute_f1(right.sum(axis=0), total.sum(axis=0))
    sample = _compute_f1(right.sum(axis=1), total.sum(axis=1))
    return {
        "macro_f1": float(macro.mean()),
        "micro_f1": float(_compute_f1(right.sum(), total.sum())),
        "sample_f1": float(sample.mean()),
    }


def _compute_f1(right, total):
    """Return F1 from two counts: correct labels, and true plus predicted labels."""
    return 2.0 * right / np.maximum(total, 1)


def find_label_thresholds(labels, probabilities, shrinkage=0.0):
    """Find the threshold of each label that maximizes its F1, for examples with several labels.

    A label is predicted if its probability is above the threshold. The threshold lies halfway
    between the probabilities of two examples, so that a decision never depends on rounding. If
    several thresholds are equally good, the highest is chosen. A label that does not occur gets the
    threshold 1, so it is never predicted.

    The threshold of a rare label would depend on only a few examples. `shrinkage` mixes the
    predicted probabilities into the true labels. With 1, the result maximizes the F1 that the model
    itself expects (Lipton et al., 2014, *Optimal Thresholding of Classifiers to Maximize F1*).

    Args:
        labels: zeros and ones (n, L), the true labels of n examples.
        probabilities: floats (n, L), from 0 to 1.
        shrinkage: float, from 0 (only true labels) to 1 (only probabilities).

    Returns:
        A float array (L,), the thresholds.

    Raises:
        ValueError: the two arrays are empty or differ in shape, or `shrinkage` is not from 0 to 1.

    ```python
    from keras_attention.training import find_label_thresholds

    thresholds = find_label_thresholds([[0], [1], [1], [0]], [[0.125], [0.25], [0.75], [0.0]])
    assert thresholds.tolist() == [0.1875]
    ```
    """
    labels, probabilities = np.asarray(labels) > 0, np.asarray(probabilities, "float64")
    if labels.shape != probabilities.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            f"labels of shape {labels.shape} and probabilities of shape {probabilities.shape}: "
            "expected both (examples, labels)."
        )
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage={shrinkage!r}: expected a number from 0 to 1.")
    counted = (1 - shrinkage) * labels + shrinkage * probabilities
    counted = np.where(labels.any(axis=0), counted, 0.0)
    pairs = zip(counted.T, probabilities.T, strict=True)
    return np.array([_find_threshold(*pair) for pair in pairs])


def _find_threshold(labels, probabilities):
    """Return the threshold of one label, from `probabilities` (n,) and `labels` (n,).

    With shrinkage, `labels` are mixed with the probabilities.
    """
    if not labels.any():
        return 1.0
    order = np.argsort(-probabilities, kind="stable")
    right, shares = np.cumsum(labels[order]), probabilities[order]
    f1 = 2.0 * right / (np.arange(1, len(order) + 1) + labels.sum())
    below = np.append(shares[1:], 0.0)
    separable = shares > below  # a threshold cannot separate equal probabilities
    if not separable.any():
        return 0.0
    best = int(np.argmax(np.where(separable, f1, -1.0)))
    return float((shares[best] + below[best]) / 2)
