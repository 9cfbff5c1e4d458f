"""Scores of translations, by sacreBLEU's own command and by counting."""

import pytest
import sacrebleu

import keras_attention as ka

WANTED = ["zweiundsiebzig", "sieben", "eine Million zwölf"]
WRITTEN = ["zweiundsiebzig", "siebzehn", "eine Million zwei"]


def test_are_those_of_sacrebleu():
    found = ka.training.score_translations(WRITTEN, WANTED)
    expected = sacrebleu.metrics.CHRF().corpus_score(WRITTEN, [WANTED]).score
    assert found == {"exact_match": pytest.approx(1 / 3, abs=1e-6), "chrf": round(expected, 4)}
    assert ka.training.score_translations(WANTED, WANTED) == {"exact_match": 1.0, "chrf": 100.0}


def test_refuses_other_numbers_of_texts():
    with pytest.raises(ValueError, match="1 translations and 2 references"):
        ka.training.score_translations(["a"], ["a", "b"])
