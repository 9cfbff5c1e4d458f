"""`ClassF1` compared with scikit-learn."""

import numpy as np
import pytest

import keras_attention as ka

SIZE = 5


@pytest.fixture
def drawn():
    """Draw labels (B, T) with padding, and logits. Class 4 never occurs and is never predicted."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, size=(9, 7))
    logits = generator.normal(size=(9, 7, SIZE)) + 1.5 * np.eye(SIZE)[labels]
    logits[..., 4] = -9.0
    labels[:, 5:] = -1
    return labels, logits.astype("float32")


def test_counts_and_macro_f1_equal_scikit_learn(drawn):
    sklearn = pytest.importorskip("sklearn.metrics")
    labels, logits = drawn
    f1 = ka.training.ClassF1(SIZE)
    for rows in (slice(0, 4), slice(4, None)):
        f1.update_state(labels[rows], logits[rows])
    true, predicted = labels[labels >= 0], logits.argmax(axis=-1)[labels >= 0]
    expected = sklearn.confusion_matrix(true, predicted, labels=range(SIZE))
    np.testing.assert_array_equal(np.asarray(f1.counts), expected)
    assert float(f1.result()) == pytest.approx(sklearn.f1_score(true, predicted, average="macro"))
    assert float(f1.result()) != pytest.approx((true == predicted).mean(), abs=1e-3)


def test_weights_apply_and_reset_empties(drawn):
    labels, logits = drawn
    f1 = ka.training.ClassF1.from_config(ka.training.ClassF1(SIZE, name="f1").get_config())
    assert f1.name == "f1" and float(f1.result()) == 0.0
    f1.update_state(labels[:, 0], logits[:, 0], sample_weight=np.arange(9.0))
    assert np.asarray(f1.counts).sum() == np.arange(9.0).sum()
    f1.reset_state()
    assert not np.asarray(f1.counts).any()


def test_lists_are_accepted():
    f1 = ka.training.ClassF1(2)
    f1.update_state([0, 1], [[2.0, 1.0], [2.0, 1.0]])
    assert np.asarray(f1.counts).tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("label", [-2, SIZE])
@pytest.mark.parametrize("shown", [1, 9])
def test_an_unknown_label_makes_the_score_nan(drawn, label, shown):
    labels, logits = drawn
    f1 = ka.training.ClassF1(SIZE)
    labels = np.where(labels == labels[0, 0], label, labels)[:shown]
    f1.update_state(labels, logits[:shown])
    assert np.isnan(float(f1.result()))
    f1.reset_state()
    f1.update_state(labels, logits[:shown], sample_weight=labels != label)
    assert not np.isnan(float(f1.result()))


def test_another_number_of_classes_is_refused(drawn):
    labels, logits = drawn
    with pytest.raises(ValueError, match="has 5 classes, but ClassF1 has num_classes=3"):
        ka.training.ClassF1(3).update_state(labels, logits)
    with pytest.raises(ValueError, match="num_classes"):
        ka.training.ClassF1(0)
