"""Loss and metrics of parsers, compared with sums over words."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

random = np.random.default_rng(0)
B, T, L = 2, 5, 3
HEADS = np.array([[2, 0, 2, -1, -1], [0, 3, 1, 3, 4]])
RELATIONS = np.where(HEADS == -1, -1, random.integers(0, L, HEADS.shape))
TRUTH = {"arc_scores": HEADS, "label_scores": RELATIONS}
SCORES = {
    "arc_scores": random.normal(size=(B, T, T + 1)).astype("float32"),
    "label_scores": random.normal(size=(B, T, T + 1, L)).astype("float32"),
}


def log_softmax(x):
    return x - np.log(np.sum(np.exp(x)))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_equals_the_definition(smoothing):
    losses = []
    for b, i in zip(*np.nonzero(HEADS != -1), strict=True):
        head, relation = HEADS[b, i], RELATIONS[b, i]
        labels = log_softmax(SCORES["label_scores"][b, i, head])
        losses.append(
            -log_softmax(SCORES["arc_scores"][b, i])[head]
            - (1 - smoothing) * labels[relation]
            - smoothing * np.mean(labels)
        )
    actual = ka.training.DependencyCrossentropy(label_smoothing=smoothing)(TRUTH, SCORES)
    np.testing.assert_allclose(actual, np.mean(losses), rtol=1e-5)


def test_padding_does_not_change_loss_or_metrics():
    """Use scores as small as those of padding."""
    pads = ((0, 0), (0, 2))
    truth = {name: np.pad(x, pads, constant_values=-1) for name, x in TRUTH.items()}
    scores = {
        "arc_scores": np.pad(SCORES["arc_scores"], (*pads, (0, 2)), constant_values=-6e4),
        "label_scores": np.pad(
            SCORES["label_scores"], (*pads, (0, 2), (0, 0)), constant_values=-6e4
        ),
    }
    loss = ka.training.DependencyCrossentropy()
    np.testing.assert_allclose(loss(truth, scores), loss(TRUTH, SCORES), rtol=1e-5)
    for make in (ka.training.UnlabeledAttachment, ka.training.LabeledAttachment):
        one, other = make(), make()
        one.update_state(truth, scores)
        other.update_state(TRUTH, SCORES)
        assert float(one.result()) == float(other.result())


def test_attachment_equals_the_definition():
    count = unlabeled = labeled = 0
    for b, i in zip(*np.nonzero(HEADS != -1), strict=True):
        head = np.argmax(SCORES["arc_scores"][b, i])
        relation = np.argmax(SCORES["label_scores"][b, i, head])
        count += 1
        unlabeled += head == HEADS[b, i]
        labeled += head == HEADS[b, i] and relation == RELATIONS[b, i]
    metrics = ka.training.UnlabeledAttachment(), ka.training.LabeledAttachment()
    scores = dict(SCORES)
    for metric, right in zip(metrics, (unlabeled, labeled), strict=True):
        metric.update_state(TRUTH, scores)
        assert float(metric.result()) == pytest.approx(right / count)


@pytest.mark.sweep
def test_a_small_parser_learns():
    """Train with one loss and both metrics over two outputs."""
    heads = np.array([[2, 0, 2, 3], [0, 1, 2, -1], [3, 3, 0, -1]])
    ids = np.array([[4, 9, 5, 7], [8, 5, 7, 0], [4, 5, 8, 0]])
    relations = np.where(heads == -1, -1, heads % L)
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20, dropout=0.0)
    keras.utils.set_random_seed(0)
    parser = ka.models.dependency_parser(
        30, L, arc_dim=16, label_dim=8, head_dropout=0.0, position=ka.positions.Learned(9), **size
    )
    model = ka.training.JointModel(parser)
    metrics = [ka.training.LabeledAttachment(name="las")]
    model.compile(keras.optimizers.Adam(0.01), ka.training.DependencyCrossentropy(), metrics)
    truth = {"arc_scores": heads, "label_scores": relations}
    model.fit(ids, truth, epochs=40, verbose=0)
    assert model.evaluate(ids, truth, verbose=0, return_dict=True)["las"] == 1.0
    actual = ops.convert_to_numpy(parser(ids)["arc_scores"]).argmax(-1)
    assert (actual[heads != -1] == heads[heads != -1]).all()
