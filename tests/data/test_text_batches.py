import numpy as np
import pytest

from keras_attention.data import Text, TextPreprocessor, text_batches

LENGTHS = [1, 8, 9, 3, 16, 17, 40, 2, 8, 5, 24, 7, 1]
TEXTS = [Text(" ".join(f"{i}x{k}" for k in range(n)), f"L{n % 3}") for i, n in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def preprocessor():
    return TextPreprocessor.build(TEXTS)


def read(batches, preprocessor):
    """The texts that batches hold, read back from the ids."""
    found = []
    for ids, labels in batches:
        assert ids.dtype == labels.dtype == "int32"
        for row, label in zip(np.asarray(ids), np.asarray(labels), strict=True):
            length = int((row != 0).sum())
            assert (row[length:] == 0).all()
            words = [preprocessor.words.entries[i] for i in row[:length]]
            found.append(Text(" ".join(words), preprocessor.labels.names[label]))
    return found


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_text_once_with_its_neighbours_in_length(preprocessor, shuffle):
    batches = text_batches(TEXTS, preprocessor, 3, shuffle=shuffle, seed=1)
    assert sorted(read(batches, preprocessor)) == sorted(TEXTS)
    assert sorted(ids.shape[1] for ids, _ in batches) == [8, 8, 8, 16, 24, 40]
    assert len(batches) == 6


def test_inputs_equal_the_preprocessors(preprocessor):
    ids, labels = next(iter(text_batches(TEXTS[:4], preprocessor, 4, edges=[])))
    np.testing.assert_array_equal(ids, preprocessor([text for text, _ in TEXTS[:4]]))
    assert [preprocessor.labels.names[i] for i in labels] == [label for _, label in TEXTS[:4]]


def test_longer_texts_are_cut():
    short = TextPreprocessor.build(TEXTS, maximum_length=5)
    widths = {ids.shape[1] for ids, _ in text_batches(TEXTS, short, 4)}
    assert widths == {5}


def test_errors(preprocessor):
    with pytest.raises(ValueError, match="texts is empty"):
        text_batches([], preprocessor)
    with pytest.raises(ValueError, match="'other' is not among the labels: L0, L1, L2"):
        text_batches([Text("a", "other")], preprocessor)
    with pytest.raises(ValueError, match="' ' holds no word"):
        text_batches([Text(" ", "L0")], preprocessor)
