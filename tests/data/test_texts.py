import pytest

import keras_attention as ka
from keras_attention.data import Text, Texts


def texts(count, label="x"):
    return [Text(f"text {i}", label) for i in range(count)]


def test_dev_is_held_out_of_train_by_seed():
    whole = texts(30)
    first = Texts.from_lists(whole, test=texts(4), dev_fraction=0.2, seed=3)
    assert len(first.dev) == 6 and len(first.train) == 24 and first.test == texts(4)
    assert sorted(first.train + first.dev) == sorted(whole)
    assert first == Texts.from_lists(whole, test=texts(4), dev_fraction=0.2, seed=3)
    assert first.dev != Texts.from_lists(whole, dev_fraction=0.2, seed=4).dev
    assert Texts.from_lists(whole, dev_fraction=0).dev == []
    assert Texts.from_lists(whole, texts(2)).train == whole


def test_labels_of_every_part_in_order():
    data = Texts.from_lists([("a", "10"), ("b", "sport")], [("c", "2")], [("d", "art")])
    assert data.labels == ("2", "10", "art", "sport")
    assert data.dev == [Text("c", "2")]
    assert repr(data) == "Texts(train=2, dev=1, test=1 texts, 4 labels: 2, 10, art, sport)"
    assert Texts.from_lists(test=texts(1), labels=("y", "x")).labels == ("y", "x")


def test_errors():
    with pytest.raises(ValueError, match="No texts given"):
        Texts.from_lists()
    with pytest.raises(ValueError, match="dev_fraction=2"):
        ka.data.Texts.from_lists(texts(3), dev_fraction=2)
