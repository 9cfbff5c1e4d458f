"""Loss, metric, thresholds and scores of label sets, compared with scikit-learn."""

import keras
import numpy as np
import pytest

import keras_attention as ka

N, L = 37, 5


@pytest.fixture
def drawn():
    generator = np.random.default_rng(0)
    labels = (generator.random((N, L)) < 0.3).astype("float32")
    logits = (generator.normal(size=(N, L)) + labels).astype("float32")
    return labels, logits


def test_the_loss_without_weights_equals_keras(drawn):
    labels, logits = drawn
    for smoothing in (0.0, 0.2):
        ours = ka.training.MultiLabelCrossentropy(label_smoothing=smoothing)
        theirs = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)
        assert float(ours(labels, logits)) == pytest.approx(float(theirs(labels, logits)), rel=1e-5)


def test_weights_apply_to_true_labels(drawn):
    labels, logits = drawn
    weights = [0.5, 1.0, 2.0, 3.0, 7.0]
    share = 1 / (1 + np.exp(-logits.astype("float64")))
    every = -(weights * labels * np.log(share) + (1 - labels) * np.log(1 - share))
    loss = ka.training.MultiLabelCrossentropy(weights)
    assert float(loss(labels, logits)) == pytest.approx(every.mean(), rel=1e-5)
    again = ka.training.MultiLabelCrossentropy.from_config(loss.get_config())
    assert again.positive_weights == weights and float(again(labels, logits)) > 0
    huge = np.full((1, L), 1e4, "float32")
    assert np.isfinite(float(loss(np.zeros((1, L)), huge)))


@pytest.mark.parametrize("weights", [[0.0], [float("nan")], [-1.0], [float("inf")]])
def test_weights_must_be_positive(weights):
    with pytest.raises(ValueError, match="positive_weights=.*expected numbers above 0"):
        ka.training.MultiLabelCrossentropy(weights)
    with pytest.raises(ValueError, match="label_smoothing=1.* below 1"):
        ka.training.MultiLabelCrossentropy(label_smoothing=1)


def test_scores_equal_scikit_learn(drawn):
    sklearn = pytest.importorskip("sklearn.metrics")
    labels, logits = drawn
    predicted = (logits > 0.4).astype(int)
    labels[:, 3] = predicted[:, 4] = 0  # one label never occurs, one is never predicted
    labels[0] = predicted[0] = 0
    assert not labels[0].any() and (labels[1:].any(axis=1) | predicted[1:].any(axis=1)).any()
    actual = ka.training.score_label_sets(labels, predicted)
    for kind in ("macro", "micro"):
        expected = sklearn.f1_score(labels, predicted, average=kind, zero_division=0)
        assert actual[f"{kind}_f1"] == pytest.approx(expected, abs=1e-12)
    expected = sklearn.f1_score(labels, predicted, average="samples", zero_division=0)
    assert actual["sample_f1"] == pytest.approx(expected, abs=1e-12)


def test_scores_refuse_different_shapes():
    for labels, predicted in [([[1, 0]], [[1]]), ([1, 0], [1, 0]), (np.zeros((0, 2)),) * 2]:
        with pytest.raises(ValueError, match="expected both [(]examples, labels[)]"):
            ka.training.score_label_sets(labels, predicted)
        with pytest.raises(ValueError, match="expected both [(]examples, labels[)]"):
            ka.training.find_label_thresholds(labels, predicted)


def compute_f1(labels, predicted):
    return 2 * (labels * predicted).sum() / max(1, labels.sum() + predicted.sum())


def test_no_other_threshold_is_better(drawn):
    """Try every threshold between two probabilities, and outside of them."""
    labels, logits = drawn
    shares = np.round(1 / (1 + np.exp(-logits)), 1)  # several examples share a probability
    actual = ka.training.find_label_thresholds(labels, shares)
    for of_label, column, threshold in zip(labels.T, shares.T, actual, strict=True):
        best = max(compute_f1(of_label, column > t) for t in np.linspace(-0.05, 1.05, 23))
        assert compute_f1(of_label, column > threshold) == pytest.approx(best)
        assert threshold not in column


def test_full_shrinkage_gives_the_expected_f1(drawn):
    """Compare with F1 of a mixture of labels and probabilities."""
    labels, logits = drawn
    shares = 1 / (1 + np.exp(-logits.astype("float64")))
    for shrinkage in (0.3, 1.0):
        mixed = (1 - shrinkage) * labels + shrinkage * shares
        actual = ka.training.find_label_thresholds(labels, shares, shrinkage)
        for k, threshold in enumerate(actual):
            values = np.sort(shares[:, k])
            tried = [0.0, *(values[1:] + values[:-1]) / 2]
            f1 = [compute_f1(mixed[:, k], shares[:, k] > t) for t in tried]
            assert threshold == pytest.approx(tried[int(np.argmax(f1))]) or threshold < values[0]
    assert ka.training.find_label_thresholds(0 * labels, shares, 1.0).tolist() == [1.0] * L
    with pytest.raises(ValueError, match="shrinkage=2: expected a number from 0 to 1"):
        ka.training.find_label_thresholds(labels, shares, 2)


def test_thresholds_of_constant_labels():
    shares = np.array([[0.2, 0.2, 0.0], [0.6, 0.6, 0.0]])
    labels = np.array([[0, 1, 1], [0, 1, 0]])
    assert ka.training.find_label_thresholds(labels, shares).tolist() == [1.0, 0.1, 0.0]


def test_the_metric_equals_f1_with_the_best_thresholds(drawn):
    labels, logits = drawn
    shares = 1 / (1 + np.exp(-logits.astype("float64")))
    tried = [[compute_f1(labels[:, k], shares[:, k] >= t / 100) for t in range(1, 100)]
             for k in range(L)]  # fmt: skip
    metric = ka.training.MacroF1(L)
    for rows in (slice(0, 20), slice(20, N)):
        metric.update_state(labels[rows], logits[rows])
    assert float(metric.result()) == pytest.approx(np.mean(np.max(tried, axis=1)), rel=1e-5)
    weights = (np.arange(N) < 20).astype("float32")
    weighted, first = ka.training.MacroF1(L), ka.training.MacroF1(L)
    weighted.update_state(labels, logits, weights)
    first.update_state(labels[:20], logits[:20])
    assert float(weighted.result()) == pytest.approx(float(first.result()))
    metric.reset_state()
    assert float(metric.result()) == 0.0
    assert ka.training.MacroF1.from_config(metric.get_config()).num_labels == L


@pytest.mark.parametrize("shape", [(2, L + 1), (2, 5, L), (L,)])
def test_logits_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=rf"expected \(batch, {L}\)"):
        ka.training.MacroF1(L).update_state(np.zeros(shape), np.zeros(shape))
