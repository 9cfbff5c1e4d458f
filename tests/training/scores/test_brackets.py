"""Scores of brackets beside EVALB's own examples."""

import pytest

import keras_attention as ka

THIS = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
# Trees, and what EVALB and PYEVALB 0.1.3 count: matched, wanted and found brackets, tags.
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
def test_examples_of_evalb(text, counts):
    matched, wanted, found, tags = counts
    for punctuation in (False, True):
        scores = ka.training.score_brackets(read(text), read(THIS), punctuation=punctuation)
        assert scores["recall"] == pytest.approx(matched / wanted, abs=1e-6)
        assert scores["precision"] == pytest.approx(matched / found, abs=1e-6)
        assert scores["f1"] == pytest.approx(2 * matched / (wanted + found), abs=1e-6)
        assert scores["tags"] == tags / 4
        assert scores["exact"] == float(matched == wanted == found)


def test_punctuation_and_labels_as_in_collins():
    wanted = read("(TOP (S (NP (NN a) (, ,)) (PRT (RP up)) (. .)))")
    found = read("(S (NP (NN a)) (, ,) (ADVP (RP up) (. .)))")
    scores = ka.training.score_brackets(found, wanted)
    assert (scores["f1"], scores["exact"], scores["tags"]) == (1.0, 1.0, 1.0)
    scores = ka.training.score_brackets(found, wanted, punctuation=True)
    assert scores["f1"] == pytest.approx(2 * 1 / 7, abs=1e-6)  # S alone is the same


def test_brackets_around_punctuation_alone_do_not_count():
    """As in EVALB (evalb.c, "Zero element"): P, R and F of this pair are 100, of 3 brackets."""
    wanted = read("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (PRN (: --)) (. .))")
    found = read("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (: --) (. .))")
    for one, other in ((found, wanted), (wanted, found)):
        scores = ka.training.score_brackets(one, other)
        assert (scores["f1"], scores["exact"], scores["tags"]) == (1.0, 1.0, 1.0)
        assert ka.training.score_brackets(one, other, punctuation=True)["exact"] == 0.0
    nothing = read("(S (. .))")
    assert ka.training.score_brackets(nothing, nothing)["f1"] == 0.0  # no word, no sentence


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="'b' are not the words of 'a'"):
        ka.training.score_brackets(read("(S (NN b))"), read("(S (NN a))"))
