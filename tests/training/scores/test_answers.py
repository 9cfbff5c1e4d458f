"""Exact match and F1 of answers as in SQuAD's official scripts, loss and F1 of spans."""

import itertools

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.training.scores.answers import find_threshold, normalize_answer

# (prediction, answer, exact match, F1 of 1.1, F1 of 2.0), by the definitions of the two scripts.
PAIRS = [
    ("Denver Broncos", "Denver Broncos", 1, 1, 1),
    ("the Denver Broncos!", "denver  broncos", 1, 1, 1),
    ("Broncos", "Denver Broncos", 0, 2 / 3, 2 / 3),
    (
        "a cat and a dog",
        "cat",
        0,
        0.5,
        0.5,
    ),  # "and" and "dog" are extra words, articles do not count
    ("New York, New York", "New York", 0, 2 / 3, 2 / 3),  # repeated words count
    ("New York", "New York, New York", 0, 2 / 3, 2 / 3),
    ("10th and 11th centuries", "in the 10th and 11th centuries", 0, 8 / 9, 8 / 9),
    ("U.S.", "US", 1, 1, 1),
    ("well-known", "well known", 0, 0, 0),  # the hyphen is removed
    ("theatre", "atre", 0, 0, 0),  # only whole words are articles
    ("The", "a", 1, 0, 1),  # both become empty
    ("", "cat", 0, 0, 0),
    ("cat", "the", 0, 0, 0),
    ("Ωmega  ", "ωmega", 1, 1, 1),
]


@pytest.mark.parametrize("prediction, answer, exact, f1_of_1, f1_of_2", PAIRS)
def test_exact_match_and_f1_of_pairs(prediction, answer, exact, f1_of_1, f1_of_2):
    assert ka.training.compute_exact_match(prediction, answer) == exact
    assert ka.training.compute_answer_f1(prediction, answer, "1.1") == pytest.approx(f1_of_1)
    assert ka.training.compute_answer_f1(prediction, answer, "2.0") == pytest.approx(f1_of_2)


def test_only_ascii_punctuation_is_removed():
    """Check that typographic quotation marks stay, as in the scripts."""
    assert normalize_answer("“An apple” — don't!") == "“an apple” — dont".replace("“an ", "“ ")
    assert normalize_answer("A.B.,  (the) [x]") == "ab x"


def test_the_best_of_several_answers_counts():
    scores = ka.training.score_answers(
        ["France", "the 10th", "nothing of it"],
        [["France", "in France"], ["10th and 11th", "tenth"], ["x", "y z"]],
        version="1.1",
    )
    assert scores == {"exact_match": pytest.approx(1 / 3), "f1": pytest.approx((1 + 0.5) / 3)}


def test_scores_of_questions_without_an_answer():
    """Compare with the script of 2.0: only an empty answer is right."""
    predictions, answers = ["", "Paris", "", "cat sat"], [[], [], ["Rome"], ["the cat", "mat"]]
    assert ka.training.score_answers(predictions, answers) == {
        "exact_match": 0.25,
        "f1": pytest.approx((1 + 0 + 0 + 2 / 3) / 4),
        "answerable_exact_match": 0.0,
        "answerable_f1": pytest.approx(1 / 3),
        "unanswerable_exact_match": 0.5,
    }
    # an answer of only an article counts in 1.1, but not in 2.0
    assert ka.training.score_answers([""], [["the"]])["exact_match"] == 1.0
    assert ka.training.score_answers(["x"], [["the", "x"]])["f1"] == 1.0
    assert set(ka.training.score_answers(["x"], [["x"]])) == {"exact_match", "f1"}


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ((["a"], [["a"]]), {"version": "3"}, "version='3': expected one of 1.1, 2.0"),
        ((["a"], []), {}, "1 predictions and 0 lists of answers"),
        ((["a"], ["abc"]), {}, "answers has the string 'abc': expected lists"),
    ],
)
def test_score_answers_refuses_invalid_versions_and_answer_lists(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ka.training.score_answers(*arguments, **options)


def test_find_threshold_finds_the_best():
    random = np.random.default_rng(0)
    for _ in range(30):
        size = random.integers(1, 7)
        scores = [(float(random.random()), float(random.integers(0, 2))) for _ in range(size)]
        missing = [float(random.integers(-3, 4)) for _ in range(size)]
        threshold, best = find_threshold(scores, missing)

        def mean(limit, scores=scores, missing=missing):
            actual = [b if m > limit else a for (a, b), m in zip(scores, missing, strict=True)]
            return sum(actual) / len(actual)

        assert best == pytest.approx(max(mean(limit) for limit in np.arange(-5, 5, 0.5)))
        assert mean(threshold) == pytest.approx(best)


def search_by_definition(start, end, longest):
    spans = [
        (start[i] + end[j], -i, -j)
        for i, j in itertools.product(range(len(start)), repeat=2)
        if i <= j < i + longest and (i > 0 or j == 0)
    ]
    _, i, j = max(spans)
    return -i, -j


def make_logits(rows=5, length=7):
    random = np.random.default_rng(0)
    names = ("start_logits", "end_logits")
    return {name: random.normal(size=(rows, length)).astype("float32") for name in names}


@pytest.mark.parametrize("longest", [1, 3, 30])
def test_f1_of_spans_equals_the_definition(longest):
    logits = make_logits()
    logits["start_logits"][3, 0] = logits["end_logits"][3, 0] = 9.0  # no span
    labels = np.array([[2, 4], [1, 1], [-1, -1], [0, 0], [3, 6]])
    expected = []
    for row, (first, last) in enumerate(labels):
        i, j = search_by_definition(logits["start_logits"][row], logits["end_logits"][row], longest)
        actual, right = set(range(i, j + 1)), set(range(first, last + 1))
        if first >= 0:
            expected.append(2 * len(actual & right) / (len(actual) + len(right)))
    metric = ka.training.SpanF1(longest)
    metric.update_state(labels, logits)
    assert float(metric.result()) == pytest.approx(np.mean(expected))
    assert expected[2] == 1.0


def test_the_loss_of_spans_equals_the_definition():
    logits, labels = make_logits(), np.array([[2, 4], [1, 1], [-1, -1], [0, 0], [3, 6]])
    losses = []
    for k, name in enumerate(logits):
        shares = np.exp(logits[name]) / np.exp(logits[name]).sum(axis=1, keepdims=True)
        losses += [-np.log(shares[i, labels[i, k]]) for i in range(5) if labels[i, k] >= 0]
    loss = ka.training.SpanCrossentropy()(labels, logits)
    assert float(loss) == pytest.approx(np.mean(losses), abs=1e-6)
