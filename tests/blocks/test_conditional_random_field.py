"""Conditional random fields by brute force over all label sequences."""

import itertools

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.entity_tags import find_forbidden, find_scheme, find_spans, may_follow
from tests import gradients
from tests.export.helpers import assert_exports

TAGS = {
    "bio": ["I-x", "B-y", "O", "B-x", "I-y"],
    "iobes": ["S-x", "O", "I-x", "E-x", "B-x"],
    "bilou": ["U-x", "O", "I-x", "L-x", "B-x"],
    "bmes": ["B", "M", "E", "S"],
}
MASK = np.array([[True] * 4, [True, False, True, False], [False, True, True, True]])


def make(labels=None, count=3, seed=0):
    """Return a layer with random weights, and random logits (3, 4, count)."""
    random = np.random.default_rng(seed)
    layer = ka.blocks.ConditionalRandomField(labels)
    layer.build((None, None, count))
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer, random.normal(size=(3, 4, count)).astype("float32")


def find_best(outputs):
    return np.argmax(keras.ops.convert_to_numpy(outputs), axis=-1)


def score_paths(layer, logits, mask=None):
    """Return, for each row, {label sequence: score} of all sequences that the scheme allows."""
    transitions, starts, ends = (np.array(w, "float64") for w in layer.get_weights())
    rows = []
    for row, chosen in zip(logits, MASK | True if mask is None else mask, strict=True):
        emissions, scores = row[chosen].astype("float64"), {}
        for path in itertools.product(range(row.shape[-1]), repeat=len(emissions)):
            tags = layer.labels and [layer.labels[k] for k in path]
            if not tags or find_forbidden(tags, layer.scheme) is None:
                score = starts[path[0]] + ends[path[-1]]
                score += sum(emissions[t, k] for t, k in enumerate(path))
                scores[path] = score + sum(transitions[pair] for pair in itertools.pairwise(path))
        rows.append(scores)
    return rows


@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
@pytest.mark.parametrize("labels", [None, TAGS["iobes"]], ids=["free", "iobes"])
def test_likelihood_and_best_path_equal_brute_force(labels, mask):
    layer, logits = make(labels, count=len(labels or "abc"))
    rows = score_paths(layer, logits, mask)
    best = find_best(layer(logits, mask=mask))
    places = MASK if mask is not None else np.ones_like(MASK)
    for i, scores in enumerate(rows):
        assert tuple(best[i, places[i]]) == max(scores, key=scores.get)
    for share in (0.0, 0.6):
        paths = [list(scores)[int(share * len(scores))] for scores in rows]
        expected = [
            scores[path] - np.logaddexp.reduce(list(scores.values()))
            for scores, path in zip(rows, paths, strict=True)
        ]
        y = np.zeros((3, 4), "int32")
        y[places] = np.concatenate(paths)
        actual = keras.ops.convert_to_numpy(layer.log_likelihood(logits, y, mask))
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_outputs_are_the_score_that_another_label_loses():
    layer, logits = make()
    outputs = keras.ops.convert_to_numpy(layer(logits))
    best = find_best(outputs)
    for i, scores in enumerate(score_paths(layer, logits)):
        for t, k in np.ndindex(4, 3):
            start = (*best[i, :t], k)
            left = max(score for path, score in scores.items() if path[: t + 1] == start)
            lost = max(scores.values()) - left
            assert abs(outputs[i, t, k] + (0 if k == best[i, t] else max(lost, 1e-3))) < 1e-5


@pytest.mark.parametrize("scheme", TAGS)
def test_forbidden_transitions_are_never_predicted(scheme):
    labels = TAGS[scheme]
    layer, _ = make(labels, count=len(labels))
    assert layer.scheme == scheme
    logits = 30 * np.random.default_rng(1).normal(size=(20, 9, len(labels))).astype("float32")
    paths = [[labels[k] for k in row] for row in find_best(layer(logits))]
    assert [find_forbidden(path, scheme) for path in paths] == [None] * 20
    raw = [[labels[k] for k in row] for row in find_best(logits)]
    assert sum(find_forbidden(path, scheme) is not None for path in raw) > 15


def test_equal_logits_give_a_valid_path():
    labels = TAGS["bmes"]
    outputs = ka.blocks.ConditionalRandomField(labels)(np.zeros((1, 3, 4), "float32"))
    path = [labels[k] for k in find_best(outputs)[0]]
    assert find_forbidden(path, "bmes") is None


def test_likelihood_has_the_gradients_of_finite_differences():
    layer, logits = make(TAGS["bio"], count=5)
    y = np.array([[2, 3, 0, 2], [2, 0, 2, 0], [0, 1, 4, 3]], "int32")

    def compute(logits):
        return keras.ops.sum(layer.log_likelihood(logits, y, MASK))

    _, (slope, *slopes) = gradients.value_and_gradients(compute, [logits], layer.weights)
    random, step = np.random.default_rng(2), 1e-2
    before = [logits, *layer.get_weights()]
    slopes = [keras.ops.convert_to_numpy(x) for x in (slope, *slopes)]
    assert all(np.abs(x).max() > 0.05 for x in slopes)
    for _ in range(3):
        directions = [random.normal(size=x.shape).astype("float32") for x in slopes]
        values = []
        for distance in (step, -step):
            changed = [x + distance * d for x, d in zip(before, directions, strict=True)]
            layer.set_weights(changed[1:])
            values.append(float(compute(changed[0])))
        expected = (values[0] - values[1]) / (2 * step)
        slope = sum(np.sum(x * d) for x, d in zip(slopes, directions, strict=True))
        np.testing.assert_allclose(slope, expected, rtol=5e-3, atol=2e-3)


def test_padding_does_not_change_outputs():
    layer, logits = make()
    padded = np.pad(logits, [(0, 0), (0, 2), (0, 0)], constant_values=7.0)
    mask = np.arange(6) < np.full((3, 1), 4)
    outputs, expected = map(keras.ops.convert_to_numpy, (layer(padded, mask=mask), layer(logits)))
    np.testing.assert_allclose(outputs[:, :4], expected, atol=1e-6)
    assert not np.any(find_best(outputs)[:, 4:])


def test_tag_schemes():
    assert [find_scheme(labels) for labels in TAGS.values()] == list(TAGS)
    assert find_scheme(["O", "NOUN"]) is None
    assert may_follow("B-x", "O", "bio") and not may_follow("B-x", "O", "iobes")
    assert not may_follow("B-x", "I-y", "bio") and not may_follow("O", "I-x", "bio")
    assert may_follow("E-x", "S-y", "iobes") and not may_follow("E-x", "E-x", "iobes")
    assert find_forbidden(["O", "B-x", "I-x"], "bio") is None
    assert find_forbidden(["O", "B-x", "I-x"], "iobes") == 3
    assert find_forbidden(["O", "I-x"], "bio") == 1
    assert find_spans(["U-x", "B-y", "L-y"]) == [(0, 1, "x"), (1, 3, "y")]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(labels=["O", "B-x"], scheme="iob1"), "scheme='iob1'.*must be one of 'bio', 'iobes'"),
        (dict(labels=["O", "B-x", "E-x"], scheme="bio"), "'E-x' is not in the scheme 'bio'.*B, I"),
        (dict(labels=["NOUN", "VERB"]), "'NOUN' is not in the scheme 'bio'.*leave out labels="),
        (dict(labels=["O", "I-x"]), "before 'I-x' in the scheme 'bio': expected also 'B-x'"),
        (dict(scheme="bio"), "scheme='bio'.*has no labels: expected labels="),
    ],
)
def test_wrong_labels_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.ConditionalRandomField(**arguments)


def test_wrong_number_of_labels_is_refused():
    layer = ka.blocks.ConditionalRandomField(["O", "B-x", "I-x"])
    with pytest.raises(ValueError, match="3 labels for logits of 4 classes.*Change labels="):
        layer(np.zeros((1, 2, 4), "float32"))


@pytest.mark.slow
@pytest.mark.tensorflow
def test_exports_with_padding():
    logits = keras.Input((None, 5), name="logits")
    lengths = keras.Input((), dtype="int32", name="lengths")
    x = ka.blocks.LengthMask()(logits, lengths)
    model = keras.Model([logits, lengths], make(TAGS["iobes"], count=5)[0](x))
    random = np.random.default_rng(3)
    batch = {
        "logits": random.normal(size=(3, 12, 5)),
        "lengths": np.array([12, 5, 0], "int32"),
    }
    assert_exports(model, sequence_length=8, examples=[batch])
