import pytest

import keras_attention as ka

TEXTS = [ka.data.Text(f"text {k}", "ab"[k % 2]) for k in range(10)]


def test_parts_and_labels():
    data = ka.data.Text.collect(TEXTS, test=TEXTS[:3], dev_fraction=0.2)
    assert [len(part) for part in data.parts.values()] == [8, 2, 3]
    assert data.kind is ka.data.Text and data.labels == ("a", "b") and data.notes == ()
    assert repr(data) == "DataSet(Text: train=8, dev=2, test=3, 2 labels)"


def test_data_set_shows_its_sizes():
    data = ka.data.DataSet(str, "train", "", "test", about={"dialogues": True})
    assert repr(data) == "DataSet(str: train=5, dev=0, test=4)" and data.labels is None


def test_an_empty_data_set_is_refused():
    with pytest.raises(ValueError, match="No Pair given: pass train, dev or test"):
        ka.data.Pair.collect()


def test_a_task_refuses_examples_of_another_kind():
    data = ka.data.Pair.collect([("a", "b")] * 3, dev_fraction=0)
    with pytest.raises(ValueError, match="TextClassifier takes a dataset of Text .text with la"):
        ka.tasks.TextClassifier.from_data(data)
