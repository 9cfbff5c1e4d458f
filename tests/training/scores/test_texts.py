"""Scores of generated texts, compared with counts, Levenshtein distance and sacreBLEU."""

import numpy as np
import pytest
import sacrebleu

import keras_attention as ka
from keras_attention.training import compute_character_error_rate, compute_word_error_rate
from keras_attention.training.scores.texts import score_texts

WANTED = ["zweiundsiebzig", "sieben", "eine Million zwölf"]
WRITTEN = ["zweiundsiebzig", "siebzehn", "eine Million zwei"]


def count_edits(one, other):
    """Compute the edit distance with Compute the edit distance with Wagner and Fischer's table."""
    table = np.zeros((len(one) + 1, len(other) + 1), int)
    table[:, 0], table[0] = np.arange(len(one) + 1), np.arange(len(other) + 1)
    for i, j in np.ndindex(len(one), len(other)):
        table[i + 1, j + 1] = min(
            table[i, j] + (one[i] != other[j]), table[i, j + 1] + 1, table[i + 1, j] + 1
        )
    return table[-1, -1]


REFERENCES = ["seven two nine", "one", "three four four"]
HYPOTHESES = ["seven to nine nine", "", "four three four"]


def test_error_rates_equal_the_definition():
    pairs = list(zip(REFERENCES, HYPOTHESES, strict=True))
    words = sum(count_edits(one.split(), other.split()) for one, other in pairs)
    assert compute_word_error_rate(REFERENCES, HYPOTHESES) == pytest.approx(words / 7)
    characters = sum(count_edits(one, other) for one, other in pairs)
    expected = characters / sum(map(len, REFERENCES))
    assert compute_character_error_rate(REFERENCES, HYPOTHESES) == pytest.approx(expected)
    assert compute_word_error_rate(REFERENCES, REFERENCES) == 0


@pytest.mark.parametrize(
    "references, hypotheses, message",
    [
        (["a"], [], "1 references and 0 hypotheses: expected one"),
        ([], [], "No reference has a word"),
        ([" "], ["a"], "No reference has a word"),
    ],
)
def test_references_without_words_are_refused(references, hypotheses, message):
    with pytest.raises(ValueError, match=message):
        compute_word_error_rate(references, hypotheses)


def test_scores_equal_sacrebleu():
    actual = ka.training.score_translations(WRITTEN, WANTED)
    expected = sacrebleu.metrics.CHRF().corpus_score(WRITTEN, [WANTED]).score
    assert actual == {"exact_match": pytest.approx(1 / 3, abs=1e-6), "chrf": round(expected, 4)}
    assert ka.training.score_translations(WANTED, WANTED) == {"exact_match": 1.0, "chrf": 100.0}


def test_any_of_several_targets_is_right():
    several = [("zweiundsiebzig", "72"), "sieben", ("eine Million zwölf", "eine Million zwei")]
    assert score_texts("exact_match", WRITTEN, several) == {"exact_match": 0.666667}
    written = ["a small dog runs over the green grass", "two cats sleep on a warm roof"]
    several = [("a dog runs on grass", written[0] + " ."), "two cats sleep on a roof"]
    streams = [["a dog runs on grass", several[1]], [several[0][1], None]]
    expected = sacrebleu.corpus_bleu(written, streams).score
    assert score_texts("bleu", written, several)["bleu"] == round(expected, 4)
    assert expected > sacrebleu.corpus_bleu(written, streams[:1]).score + 10


def test_different_numbers_of_texts_are_refused():
    with pytest.raises(ValueError, match="1 translations and 2 references"):
        ka.training.score_translations(["a"], ["a", "b"])
