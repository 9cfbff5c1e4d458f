"""Scores of brackets compared with EVALB's examples."""

import pytest

import keras_attention as ka

THIS = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
# Trees, and the counts of EVALB and PYEVALB 0.1.3: matched, actual and predicted brackets, tags.
EXAMPLES = [
    (THIS, (4, 4, 4, 4)),
    ("(S (A (P this)) (B (Q is) (C (R a) (T test))))", (3, 4, 4, 4)),
    ("(S (A (P this)) (B (Q is) (A (R a) (U test))))", (4, 4, 4, 3)),
    ("(S (C (P this)) (B (Q is) (A (R a) (U test))))", (3, 4, 4, 3)),
    ("(S (A (P this)) (B (Q is) (R a) (A (T test))))", (3, 4, 4, 4)),
    ("(S (A (P this) (Q is)) (A (R a) (T test)))", (2, 4, 3, 4)),
    ("(S (P this) (Q is) (R a) (T test))", (1, 4, 1, 4)),
    ("(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", (4, 4, 5, 4)),
    ("(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", (4, 4, 8, 4)),
]


def read(text):
    return ka.data.parse_brackets(text)


@pytest.mark.parametrize("text, counts", EXAMPLES)
def test_scores_equal_evalb(text, counts):
    matched, actual, predicted, tags = counts
    for punctuation in (False, True):
        scores = ka.training.score_brackets(read(text), read(THIS), punctuation=punctuation)
        assert scores["recall"] == pytest.approx(matched / actual, abs=1e-6)
        assert scores["precision"] == pytest.approx(matched / predicted, abs=1e-6)
        assert scores["f1"] == pytest.approx(2 * matched / (actual + predicted), abs=1e-6)
        assert scores["tags"] == tags / 4
        assert scores["exact"] == float(matched == actual == predicted)


def test_punctuation_and_labels_follow_collins():
    actual = read("(TOP (S (NP (NN a) (, ,)) (PRT (RP up)) (. .)))")
    predicted = read("(S (NP (NN a)) (, ,) (ADVP (RP up) (. .)))")
    scores = ka.training.score_brackets(predicted, actual)
    assert (scores["f1"], scores["exact"], scores["tags"]) == (1.0, 1.0, 1.0)
    scores = ka.training.score_brackets(predicted, actual, punctuation=True)
    assert scores["f1"] == pytest.approx(2 * 1 / 7, abs=1e-6)  # only S is equal


def test_brackets_around_only_punctuation_do_not_count():
    """Compare with EVALB (evalb.c, "Zero element"): P, R and F of this pair are 100."""
    actual = read("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (PRN (: --)) (. .))")
    predicted = read("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (: --) (. .))")
    for one, other in ((predicted, actual), (actual, predicted)):
        scores = ka.training.score_brackets(one, other)
        assert (scores["f1"], scores["exact"], scores["tags"]) == (1.0, 1.0, 1.0)
        assert ka.training.score_brackets(one, other, punctuation=True)["exact"] == 0.0
    nothing = read("(S (. .))")
    assert ka.training.score_brackets(nothing, nothing)["f1"] == 0.0  # it has no words


def test_trees_of_other_words_are_refused():
    with pytest.raises(ValueError, match="'b' are not the words of 'a'"):
        ka.training.score_brackets(read("(S (NN b))"), read("(S (NN a))"))
