"""Entity scores against seqeval, and span matching against plain Python sets."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_attention as ka
from tests.grids import quick

F1, Precision, Recall = (
    ka.training.EntityF1,
    ka.training.EntityPrecision,
    ka.training.EntityRecall,
)
LABELS = ["I-PER", "B-LOC", "O", "B-PER", "I-ORG", "B-ORG", "I-LOC"]  # not sorted


def entities(tags):
    """Return entities (type, first, last) by definition. `I-` after another type begins one."""
    outcome, first = set(), None
    for t, tag in enumerate([*tags, "O"]):
        begins = tag != "O" and (tag[0] == "B" or t == 0 or tags[t - 1][2:] != tag[2:])
        if first is not None and (begins or tag == "O"):
            outcome.add((tags[first][2:], first, t - 1))
            first = None
        if begins:
            first = t
    return outcome


def random_tags(rng, labels=LABELS, sentences=13, longest=11):
    lengths = rng.integers(1, longest + 1, sentences)
    return [[str(tag) for tag in rng.choice(labels, n)] for n in lengths]


def pad(sentences, labels=LABELS):
    ids = np.full((len(sentences), max(map(len, sentences))), -1)
    for row, tags in zip(ids, sentences, strict=True):
        row[: len(tags)] = [labels.index(tag) for tag in tags]
    return ids


def one_hot(ids, classes=7):
    """Return one-hot predictions, with label 1 at padding."""
    return np.eye(classes, dtype="float32")[np.where(ids < 0, 1, ids)]


def update(metric, true, predicted, size=5):
    for i in range(0, len(true), size):
        metric.update_state(pad(true[i : i + size]), one_hot(pad(predicted[i : i + size])))
    return metric


def noisy(rng, sentences, rate=0.3):
    """Draw predictions that are often right, so that some entities are right."""
    return [[t if rng.random() > rate else str(rng.choice(LABELS)) for t in s] for s in sentences]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
@pytest.mark.parametrize("seed", quick(range(3), 0))
def test_scores_equal_seqeval(average, seed):
    seqeval = pytest.importorskip("seqeval.metrics")
    rng = np.random.default_rng(seed)
    true = random_tags(rng)
    predicted = noisy(rng, true)
    for metric, theirs in (
        (F1, seqeval.f1_score),
        (Precision, seqeval.precision_score),
        (Recall, seqeval.recall_score),
    ):
        ours = update(metric(LABELS, average=average), true, predicted).result()
        np.testing.assert_allclose(ours, theirs(true, predicted, average=average), atol=1e-6)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_counts_equal_sets_of_spans(data):
    sentence = st.lists(st.sampled_from(LABELS), min_size=1, max_size=9)
    true = data.draw(st.lists(sentence, min_size=1, max_size=4))
    predicted = [
        data.draw(st.lists(st.sampled_from(LABELS), min_size=len(tags), max_size=len(tags)))
        for tags in true
    ]
    metric = update(F1(LABELS), true, predicted)
    for k, kind in enumerate(metric.types):
        actual = [{e for e in entities(s) if e[0] == kind} for s in true]
        guess = [{e for e in entities(s) if e[0] == kind} for s in predicted]
        assert metric.actual.numpy()[k] == sum(map(len, actual))
        assert metric.predicted.numpy()[k] == sum(map(len, guess))
        matches = sum(len(a & g) for a, g in zip(actual, guess, strict=True))
        assert metric.correct.numpy()[k] == matches


@pytest.mark.parametrize(
    "true, predicted, correct",
    [
        ("B-PER I-PER", "B-PER I-PER", 1),
        ("B-PER I-PER", "I-PER I-PER", 1),  # I- after nothing begins an entity
        ("B-PER I-PER", "B-PER B-PER", 0),
        ("B-PER I-PER", "B-PER O", 0),
        ("B-PER O", "B-PER I-PER", 0),
        ("B-PER I-PER O", "B-PER I-LOC O", 0),
        ("B-PER I-LOC", "B-PER B-LOC", 2),  # I- after another type begins one, too
        ("I-PER B-PER", "B-PER I-PER", 0),
    ],
)
def test_entity_scores_of_known_cases(true, predicted, correct):
    metric = update(F1(LABELS), [true.split()], [predicted.split()])
    assert metric.correct.numpy().sum() == correct


def test_entities_end_with_the_sentence():
    metric = update(F1(LABELS), [["O", "B-PER"], ["I-PER", "O"]], [["O", "B-PER"], ["I-PER", "O"]])
    assert metric.actual.numpy().sum() == metric.correct.numpy().sum() == 2


def test_an_entity_continues_across_ignored_positions():
    whole = update(F1(LABELS), [["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    pieces = F1(LABELS)
    true, predicted = pad([["B-PER", "I-PER", "O"]]), pad([["B-PER", "I-PER", "B-LOC"]])
    true, predicted = (np.repeat(x, 3, axis=1) for x in (true, predicted))
    true[:, 1::3], true[:, 2::3] = -1, -1
    predicted[:, 1::3] = LABELS.index("O")
    pieces.update_state(true, one_hot(predicted))
    for ours, theirs in zip(pieces.variables, whole.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_weights_apply_to_entities():
    true = pad([["B-PER", "I-PER"], ["B-LOC", "O"]])
    metric = F1(LABELS)
    metric.update_state(true, one_hot(true), np.array([3.0, 0.5]))
    np.testing.assert_array_equal(metric.actual, [0.5, 0.0, 3.0])
    metric.reset_state()
    metric.update_state(true, one_hot(true), np.array([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(metric.correct, [0.0, 0.0, 1.0])


def test_no_entities_score_zero():
    for average in ("micro", "macro", "weighted"):
        for metric in (F1, Precision, Recall):
            assert float(update(metric(LABELS, average), [["O"]], [["O"]]).result()) == 0.0


@pytest.mark.parametrize("labels", [["O", "B", "I"], ["B-x-y", "I-x-y", "O"]])
def test_one_type_or_types_with_dashes(labels):
    metric = F1(labels)
    metric.update_state(np.array([[1, 1, 2, 0]]), one_hot(np.array([[1, 1, 2, 0]]), 3))
    assert metric.types == [labels[1][2:]] and float(metric.result()) == 1.0


@pytest.mark.slow
def test_the_metric_works_in_fit_and_evaluate():
    seqeval = pytest.importorskip("seqeval.metrics")
    rng = np.random.default_rng(3)
    true = random_tags(rng, sentences=20)
    predicted = noisy(rng, true)
    model = keras.Sequential([keras.layers.Dense(len(LABELS))])
    loss = ka.training.MaskedSparseCategoricalCrossentropy()
    model.compile("sgd", loss, metrics=[F1(LABELS)])
    assert "entity_f1" in model.fit(one_hot(pad(true)), pad(true), verbose=0).history
    model.set_weights([np.eye(len(LABELS)), np.zeros(len(LABELS))])
    inputs, labels = one_hot(pad(predicted)), pad(true)
    scores = model.evaluate(inputs, labels, batch_size=7, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["entity_f1"], seqeval.f1_score(true, predicted), rtol=1e-5)


@pytest.mark.slow
def test_runs_compiled():
    import tensorflow as tf

    true = pad([["B-PER", "I-PER", "O"], ["B-LOC", "O"]])
    metric = F1(LABELS)
    update_state = tf.function(metric.update_state, jit_compile=True)
    update_state(tf.constant(true), tf.constant(one_hot(true)))
    np.testing.assert_array_equal(metric.correct, [1.0, 0.0, 1.0])


@pytest.mark.parametrize("metric", [F1, Precision, Recall])
def test_round_trip(metric):
    scores = metric(LABELS, average="macro", ignore_class=-100, name="entities", dtype="float64")
    config = keras.saving.serialize_keras_object(scores)
    assert config["registered_name"] == f"keras_attention>{metric.__name__}"
    revived = keras.saving.deserialize_keras_object(config)
    assert revived.get_config() == scores.get_config()
    assert revived.get_config()["average"] == "macro"


def test_errors():
    with pytest.raises(ValueError, match="labels has 'NOUN', 'X-PER': expected the BIO tags"):
        F1(["O", "NOUN", "X-PER", "B-PER"])
    with pytest.raises(ValueError, match=r"labels=\['O'\] has no entity type"):
        F1(["O"])
    with pytest.raises(ValueError, match=r"EntityRecall\(average='mikro'\).*'micro', 'macro'"):
        Recall(LABELS, average="mikro")


# {letters of another scheme: letters of BIOES}, because seqeval reads BIOES.
SCHEMES = {"BIOES": {}, "BILOU": {"E": "L", "S": "U"}, "BMES": {"I": "M"}}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_that_mark_last_tokens_equal_seqeval(scheme):
    seqeval = pytest.importorskip("seqeval.metrics")
    labels = ["O", *(f"{mark}-{kind}" for kind in ("PER", "LOC") for mark in "BIES")]
    letters = SCHEMES[scheme]

    def translate(tag):
        return letters.get(tag[0], tag[0]) + tag[1:]

    def encode(sentences):
        return [[translate(tag) for tag in tags] for tags in sentences]

    rng = np.random.default_rng(0)
    true = random_tags(rng, labels)
    predicted = [[t if rng.random() > 0.3 else str(rng.choice(labels)) for t in s] for s in true]
    names = [translate(label) for label in labels]
    metric = F1(names, average="macro")
    metric.update_state(
        pad(encode(true), names), one_hot(pad(encode(predicted), names), len(names))
    )
    expected = seqeval.f1_score(true, predicted, average="macro")
    np.testing.assert_allclose(metric.result(), expected, atol=1e-6)


def test_single_token_tags_are_separate_entities():
    metric = F1(["O", "S-x", "B-x", "E-x"])
    metric.update_state(np.array([[1, 1, 2, 3]]), np.eye(4)[[[1, 1, 2, 3]]])
    assert int(metric.actual.numpy()[0]) == 3 and float(metric.result()) == 1.0
