"""Scores of brackets equal those of PYEVALB."""

import pytest
from PYEVALB import parser, scorer

import keras_attention as ka
from tests.training.scores.test_brackets import EXAMPLES, THIS, read


def test_it_is_pyevalb():
    """Without punctuation left out, which PYEVALB does not."""
    for text, _ in EXAMPLES:
        result = scorer.Scorer().score_trees(*map(parser.create_from_bracket_string, (THIS, text)))
        scores = ka.training.score_brackets(read(text), read(THIS), punctuation=True)
        assert scores["recall"] == pytest.approx(result.recall, abs=1e-6)
        assert scores["precision"] == pytest.approx(result.prec, abs=1e-6)
        assert scores["tags"] == result.tag_accracy
