"""Labels and weights of every shape, compared with Keras or NumPy, or an error."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention import training

B, T, L = 3, 5, 4
random = np.random.default_rng(0)
LABELS = {"rows": random.integers(0, L, (B,)), "tokens": random.integers(0, L, (B, T))}
LABELS["square"] = random.integers(0, L, (T, T))
LOGITS = {name: random.normal(size=(*x.shape, L)).astype("float32") for name, x in LABELS.items()}
TAGS = ["O", "B-X", "I-X", "B-Y"]


def cross_entropies(labels, logits):
    shifted = logits.astype("float64") - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]


def define_loss(labels, logits, weights):
    return (cross_entropies(labels, logits) * weights).mean()


def define_accuracy(labels, logits, weights):
    return ((logits.argmax(-1) == labels) * weights).sum() / weights.sum()


def define_perplexity(labels, logits, weights):
    return np.exp((cross_entropies(labels, logits) * weights).sum() / weights.sum())


def define_macro_f1(labels, logits, weights):
    predicted, scores = logits.argmax(-1), []
    for k in range(L):
        right = (weights * (labels == k) * (predicted == k)).sum()
        total = (weights * (labels == k)).sum() + (weights * (predicted == k)).sum()
        scores += [2 * right / total] if total else []
    return np.mean(scores)


def measure(metric):
    def update(labels, logits, weights=None):
        one = metric()
        one.update_state(labels, logits, weights)
        return float(one.result())

    return update


METRICS = {
    "accuracy": training.MaskedSparseCategoricalAccuracy,
    "perplexity": training.MaskedPerplexity,
    "macro F1": lambda: training.ClassF1(L),
}
SPARSE = {
    "loss": (training.MaskedSparseCategoricalCrossentropy(), define_loss),
    "accuracy": (measure(METRICS["accuracy"]), define_accuracy),
    "perplexity": (measure(METRICS["perplexity"]), define_perplexity),
    "macro F1": (measure(METRICS["macro F1"]), define_macro_f1),
}
WEIGHTS = {
    "rows": [(), (B,), (1,), (B, 1)],
    "tokens": [(), (B,), (B, 1), (B, T), (B, T, 1), (1, T)],
    "square": [(T,), (T, 1), (1, T), (T, T)],
}
WRONG_WEIGHTS = {
    "rows": [(B + 1,), (B, B)],
    "tokens": [(T,), (B + 1,), (T, B), (B, T, L)],
    "square": [(B,), (T, B)],
}
WRONG = {
    "rows": [(), (L,), (1, B), (B, L), (B, 1, 1)],
    "tokens": [(B,), (T,), (1, T), (B, 1), (T, B), (B, T, L), (1, B, T)],
    "square": [(T,), (1, T), (T, 1)],
}


def as_rows(weights, labels):
    """Return weights as documented: (B,) are weights of rows."""
    if weights.ndim == labels.ndim + 1:
        weights = weights[..., 0]
    return np.broadcast_to(weights.reshape(*weights.shape, *[1] * (labels.ndim - weights.ndim)),
                           labels.shape)  # fmt: skip


def pairs(table):
    return [(kind, shape) for kind, shapes in table.items() for shape in shapes]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", SPARSE)
def test_a_last_axis_of_one_is_dropped(name, kind):
    compute, define = SPARSE[name]
    labels, logits = LABELS[kind], LOGITS[kind]
    expected = define(labels, logits, np.ones(labels.shape))
    for same in (labels, labels[..., None], labels.astype("float32"), labels[..., None].tolist()):
        np.testing.assert_allclose(float(compute(same, logits)), expected, rtol=1e-5)


@pytest.mark.parametrize(("kind", "shape"), pairs(WEIGHTS), ids=str)
@pytest.mark.parametrize("name", SPARSE)
def test_weights_of_rows_apply_to_rows(name, kind, shape):
    compute, define = SPARSE[name]
    labels, logits = LABELS[kind], LOGITS[kind]
    weights = np.asarray(np.random.default_rng(1).uniform(0.5, 2.0, shape), "float32")
    expected = define(labels, logits, as_rows(weights, labels))
    np.testing.assert_allclose(float(compute(labels, logits, weights)), expected, rtol=1e-5)


@pytest.mark.parametrize(("kind", "shape"), pairs(WRONG), ids=str)
def test_labels_of_other_shapes_are_refused(kind, shape):
    labels = np.ones(shape, "int32")
    for name in (*SPARSE, "sequence", "entities", "classes"):
        compute = {
            "classes": measure(lambda: training.ClassF1(L)),
            "sequence": measure(training.MaskedSequenceAccuracy),
            "entities": measure(lambda: training.EntityF1(TAGS)),
        }.get(name) or SPARSE[name][0]
        with pytest.raises(ValueError, match="labels of shape .* for predictions of shape"):
            compute(labels, LOGITS[kind])


@pytest.mark.parametrize(("kind", "shape"), pairs(WRONG_WEIGHTS), ids=str)
@pytest.mark.parametrize("name", SPARSE)
def test_weights_of_other_shapes_are_refused(name, kind, shape):
    with pytest.raises(ValueError, match="sample_weight of shape"):
        SPARSE[name][0](LABELS[kind], LOGITS[kind], np.ones(shape, "float32"))


def compute_crf_loss(labels, logits, weights=None):
    """Compute the loss of a random field without transitions, which is the cross-entropy."""
    crf = ka.blocks.ConditionalRandomField()
    return training.CRFLoss()(labels, crf(logits), weights)


@pytest.mark.parametrize("shape", WEIGHTS["tokens"], ids=str)
def test_weights_of_a_random_field(shape):
    labels, logits = LABELS["tokens"], LOGITS["tokens"]
    weights = np.asarray(np.random.default_rng(1).uniform(0.5, 2.0, shape), "float32")
    expected = define_loss(labels, logits, as_rows(weights, labels))
    for same in (labels, labels[..., None]):
        loss = compute_crf_loss(same, logits, weights)
        np.testing.assert_allclose(float(loss), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", WRONG["tokens"], ids=str)
def test_a_random_field_refuses_labels_of_other_shapes(shape):
    with pytest.raises(ValueError, match="labels of shape .* for predictions of shape"):
        compute_crf_loss(np.ones(shape, "int32"), LOGITS["tokens"])


def test_rows_without_positions_have_no_sequence_accuracy():
    with pytest.raises(ValueError, match=r"labels of shape \(3,\) have no axis of positions"):
        measure(training.MaskedSequenceAccuracy)(LABELS["rows"], LOGITS["rows"])


def test_the_error_mentions_one_hot_labels():
    with pytest.raises(ValueError, match="One-hot labels become classes by argmax"):
        SPARSE["loss"][0](np.eye(L)[LABELS["tokens"]], LOGITS["tokens"])


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SPARSE)
def test_unknown_sizes_are_compared_at_run_time(name):
    import tensorflow as tf

    compute, define = SPARSE[name]
    if name != "loss":  # a metric creates its variables once
        metric = METRICS[name]()

        def compute(labels, logits):
            metric.reset_state()
            metric.update_state(labels, logits)
            return metric.result()

    specs = [tf.TensorSpec([None, None], "int32"), tf.TensorSpec([None, None, L])]
    traced = tf.function(compute, input_signature=specs)
    labels, logits = LABELS["tokens"].astype("int32"), LOGITS["tokens"]
    expected = define(labels, logits, np.ones((B, T)))
    np.testing.assert_allclose(float(traced(labels, logits)), expected, rtol=1e-5)
    for wrong in (labels[:1], labels[:, :1], labels.reshape(T, B)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            traced(wrong, logits)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_loss_and_metric_agree_if_batch_equals_length():
    inputs = keras.Input((T, 2))
    model = keras.Model(inputs, keras.layers.Dense(L)(inputs))
    perplexity = training.MaskedPerplexity(name="perplexity")
    loss = training.MaskedSparseCategoricalCrossentropy(reduction="mean_with_sample_weight")
    model.compile("sgd", loss, weighted_metrics=[perplexity])
    x, weights = random.normal(size=(T, T, 2)), np.arange(1.0, T + 1)
    actual = model.evaluate(
        x, LABELS["square"], sample_weight=weights, batch_size=T, return_dict=True, verbose=0
    )
    assert np.log(actual["perplexity"]) == pytest.approx(actual["loss"], rel=1e-5)


def test_shapes_of_independent_labels():
    truth = random.integers(0, 2, (B, L)).astype("float32")
    logits = random.normal(size=(B, L)).astype("float32")
    loss, keras_loss = (
        training.MultiLabelCrossentropy(),
        keras.losses.BinaryCrossentropy(from_logits=True),
    )
    weights = np.array([1.0, 2.0, 0.5], "float32")
    for sample_weight in (None, weights):
        expected = float(keras_loss(truth, logits, sample_weight))
        assert float(loss(truth, logits, sample_weight)) == pytest.approx(expected, rel=1e-5)
    one = float(keras_loss(truth[:, 0], logits[:, :1]))
    assert float(loss(truth[:, 0], logits[:, :1])) == pytest.approx(one, rel=1e-5)
    f1 = training.MacroF1(num_labels=L)
    for shape in [(B,), (1, L), (B, 1), (L, B), (B, L, 1)]:
        for compute in (loss, f1.update_state):
            with pytest.raises(ValueError, match="expected both of one shape"):
                compute(np.ones(shape, "float32"), logits)
    with pytest.raises(ValueError, match="sample_weight of shape"):
        f1.update_state(truth, logits, np.ones(L))


@pytest.mark.tensorflow
def test_unknown_sizes_of_independent_labels():
    import tensorflow as tf

    specs = [tf.TensorSpec([None, None]), tf.TensorSpec([None, L])]
    loss = tf.function(training.MultiLabelCrossentropy(), input_signature=specs)
    truth, logits = np.ones((B, L), "float32"), np.zeros((B, L), "float32")
    assert float(loss(truth, logits)) == pytest.approx(np.log(2), rel=1e-5)
    for wrong in (truth[:1], truth[:, :1]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            loss(wrong, logits)


@pytest.mark.parametrize("shape", [(B,), (B, 1)], ids=str)
def test_weights_of_pairs(shape):
    numbers = np.stack([np.arange(B), np.arange(B, 2 * B)], axis=1)
    logits = random.normal(size=(B, B)).astype("float32")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, shape).astype("float32")
    sides = [cross_entropies(np.arange(B), x) for x in (logits, logits.T)]
    expected = (np.mean(sides, axis=0) * weights.reshape(-1)).mean()
    for same in (numbers, numbers.astype("float32"), numbers.tolist()):
        loss = training.InfoNCE()(same, logits, weights)
        np.testing.assert_allclose(float(loss), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (B,), (B, 1), (1, 2), (B, 3), (B, 2, 1)], ids=str)
def test_pairs_of_other_shapes_are_refused(shape):
    for compute in (training.InfoNCE(), measure(training.ContrastiveAccuracy)):
        with pytest.raises(ValueError, match="labels of shape .* for predictions of shape"):
            compute(np.ones(shape, "int32"), np.zeros((B, B), "float32"))


HEADS = np.array([[2, 0, 2, -1], [0, 1, -1, -1]])
RELATIONS = np.array([[1, 0, 2, -1], [0, 2, -1, -1]])
TREES = {"arc_scores": HEADS, "label_scores": RELATIONS}
SCORES = {
    "arc_scores": random.normal(size=(2, 4, 5)).astype("float32"),
    "label_scores": random.normal(size=(2, 4, 5, 3)).astype("float32"),
}


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 4)], ids=str)
def test_weights_of_trees(shape):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, shape).astype("float32")
    each = np.broadcast_to(weights if weights.ndim == 2 else weights[:, None], HEADS.shape)
    counts = HEADS >= 0
    predicted = SCORES["arc_scores"].argmax(-1)
    arcs = predicted == HEADS
    labels = np.take_along_axis(SCORES["label_scores"], predicted[..., None, None], 2)[:, :, 0]
    labeled = arcs & (labels.argmax(-1) == RELATIONS)
    for metric, right in [
        (training.UnlabeledAttachment(), arcs),
        (training.LabeledAttachment(), labeled),
    ]:
        metric.update_state(TREES, SCORES, weights)
        expected = (right * each * counts).sum() / (each * counts).sum()
        assert float(metric.result()) == pytest.approx(expected, rel=1e-5)
    loss = training.DependencyCrossentropy(reduction="none")(TREES, SCORES)
    weighted = training.DependencyCrossentropy(reduction="sum")(TREES, SCORES, weights)
    expected = (keras.ops.convert_to_numpy(loss) * each).sum()
    assert float(weighted) == pytest.approx(expected, rel=1e-5)


def test_wrong_shapes_of_trees_are_refused():
    for wrong in (HEADS[:1], HEADS[:, :1], HEADS[0]):
        truth = {"arc_scores": wrong, "label_scores": wrong}
        computes = (
            training.DependencyCrossentropy(),
            training.UnlabeledAttachment().update_state,
            training.LabeledAttachment().update_state,
        )
        for compute in computes:
            with pytest.raises(ValueError, match="labels of shape"):
                compute(truth, SCORES)


def test_wrong_shapes_of_spans_are_refused():
    ends = {name: random.normal(size=(B, T)).astype("float32") for name in
            ("start_logits", "end_logits")}  # fmt: skip
    truth, weights = np.array([[1, 2], [0, 0], [3, 4]]), np.array([1.0, 2.0, 0.5], "float32")
    stacked = np.stack([ends["start_logits"], ends["end_logits"]], 1)
    expected = (cross_entropies(truth, stacked) * weights[:, None]).mean()
    loss = training.SpanCrossentropy()
    assert float(loss(truth, ends, weights)) == pytest.approx(expected, rel=1e-5)
    each = []
    for row in range(B):
        one = training.SpanF1()
        one.update_state(truth[row : row + 1], {k: v[row : row + 1] for k, v in ends.items()})
        each.append(float(one.result()))
    f1 = training.SpanF1()
    f1.update_state(truth, ends, weights)
    assert float(f1.result()) == pytest.approx(np.average(each, weights=weights), rel=1e-5)
    for wrong in (truth[0], truth[:1], truth[:, :1]):
        for compute in (loss, f1.update_state):
            with pytest.raises(ValueError, match="labels of shape"):
                compute(wrong, ends)


def test_wrong_shapes_of_transcripts_are_refused():
    labels, logits = np.array([[1, 2], [3, 0], [2, 2]]), LOGITS["tokens"]
    loss, accuracy = training.MaskedCTC(), training.CTCTranscriptAccuracy()
    weights = np.array([1.0, 2.0, 0.5], "float32")
    each = keras.ops.convert_to_numpy(training.MaskedCTC(reduction="none")(labels, logits))
    assert float(loss(labels, logits, weights)) == pytest.approx((each * weights).mean(), rel=1e-5)
    assert float(loss(labels[..., None], logits)) == pytest.approx(each.mean(), rel=1e-5)
    for compute in (loss, accuracy.update_state):
        for wrong in (labels[0], labels[:1]):
            with pytest.raises(ValueError, match="expected labels"):
                compute(wrong, logits)
        with pytest.raises(ValueError, match="sample_weight of shape"):
            compute(labels, logits, np.ones(T))
    loss = training.CTCAttention()
    truth = {"logits": LABELS["tokens"], "ctc_logits": labels}
    actual = {"logits": logits, "ctc_logits": logits}
    rows = keras.ops.convert_to_numpy(training.CTCAttention(reduction="none")(truth, actual))
    assert float(loss(truth, actual, weights)) == pytest.approx((rows * weights).mean(), rel=1e-5)
    with pytest.raises(ValueError, match="labels of shape"):
        loss({**truth, "logits": LABELS["tokens"][:1]}, actual)


@pytest.mark.tensorflow
def test_wrong_shapes_of_objects_are_refused():
    boxes = random.uniform(0.2, 0.6, (2, 3, 4)).astype("float32")
    truth = {"labels": np.array([[0, 1], [1, -1]]), "boxes": boxes[:, :2]}
    actual = {"logits": random.normal(size=(2, 3, 2)).astype("float32"), "boxes": boxes}
    loss = training.HungarianLoss()
    weights = np.array([2.0, 0.5], "float32")
    each = keras.ops.convert_to_numpy(training.HungarianLoss(reduction="none")(truth, actual))
    assert float(loss(truth, actual, weights)) == pytest.approx((each * weights).mean(), rel=1e-5)
    metric = training.BoxAveragePrecision(2)
    metric.update_state(truth, actual, np.array([1.0, 0.0]))
    first = training.BoxAveragePrecision(2)
    first.update_state(*({k: v[:1] for k, v in x.items()} for x in (truth, actual)))
    assert float(metric.result()) == pytest.approx(float(first.result()))
    wrong = [
        {"labels": truth["labels"][:1], "boxes": truth["boxes"][:1]},
        {"labels": truth["labels"][0], "boxes": truth["boxes"][0]},
        {"labels": truth["labels"], "boxes": boxes},
        {"labels": truth["labels"][..., None], "boxes": truth["boxes"]},
    ]
    for wrong_truth in wrong:
        for compute in (loss, metric.update_state):
            with pytest.raises(ValueError, match="expected labels"):
                compute(wrong_truth, actual)


def test_every_loss_and_metric_is_tested():
    """Check that every loss and metric has a test of its shapes in this file."""
    kinds = (keras.losses.Loss, keras.metrics.Metric)
    names = {name for name in ka.training.__all__ if isinstance(getattr(training, name), type)}
    names = {name for name in names if issubclass(getattr(training, name), kinds)}
    text = pathlib.Path(__file__).read_text("utf-8")
    # Subclasses of `EntityF1` and the two masked accuracies:
    same = {"EntityPrecision", "EntityRecall", "DecoderAccuracy", "DecoderSequenceAccuracy"}
    assert not {name for name in names - same if f"training.{name}" not in text}
