"""Error rates by the distance of Levenshtein, on cases counted by hand."""

import numpy as np
import pytest

from keras_attention.training import compute_character_error_rate, compute_word_error_rate


def count_edits(one, other):
    """Wagner and Fischer's table."""
    table = np.zeros((len(one) + 1, len(other) + 1), int)
    table[:, 0], table[0] = np.arange(len(one) + 1), np.arange(len(other) + 1)
    for i, j in np.ndindex(len(one), len(other)):
        table[i + 1, j + 1] = min(
            table[i, j] + (one[i] != other[j]), table[i, j + 1] + 1, table[i + 1, j] + 1
        )
    return table[-1, -1]


REFERENCES = ["seven two nine", "one", "three four four"]
HYPOTHESES = ["seven to nine nine", "", "four three four"]


def test_words_and_characters_by_definition():
    pairs = list(zip(REFERENCES, HYPOTHESES, strict=True))
    words = sum(count_edits(one.split(), other.split()) for one, other in pairs)
    assert compute_word_error_rate(REFERENCES, HYPOTHESES) == pytest.approx(words / 7)
    characters = sum(count_edits(one, other) for one, other in pairs)
    expected = characters / sum(map(len, REFERENCES))
    assert compute_character_error_rate(REFERENCES, HYPOTHESES) == pytest.approx(expected)
    assert compute_word_error_rate(REFERENCES, REFERENCES) == 0


@pytest.mark.parametrize("references, hypotheses", [(["a"], []), ([], []), ([" "], ["a"])])
def test_refuses_what_has_no_rate(references, hypotheses):
    with pytest.raises(ValueError, match="references and .* hypotheses"):
        compute_word_error_rate(references, hypotheses)
