import pytest

import keras_attention as ka
from keras_attention.data.holding_out import held_out
from keras_attention.data.tagged import tagged
from tests.data.test_conllu import TINY


def test_dev_is_held_out_of_train_by_seed():
    whole = ka.data.read_conllu(TINY)
    first = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=3)
    again = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=3)
    other = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=4)
    assert len(first.dev) == 6 and len(first.train) == 24 and first.test == whole
    assert sorted(first.train + first.dev) == sorted(whole)
    assert first == again and first.dev != other.dev
    assert ka.data.from_conllu(TINY, dev_fraction=0).dev == []


def test_a_given_dev_stays():
    data = ka.data.from_conllu(TINY, dev=TINY)
    assert data.train == data.dev == ka.data.read_conllu(TINY)


def test_labels_of_every_part():
    parts = [[ka.data.Sentence(("a",), (tag,))] for tag in ("N", "O", "A")]
    data = tagged(*parts, dev_fraction=0.1, seed=0)
    assert data.labels == ("O", "A", "N")
    assert repr(data) == "Tagged(train=1, dev=1, test=1 sentences, 3 labels: O, A, N)"


def test_held_out_indices():
    kept, held = held_out(11, 0.25, seed=0)
    assert len(held) == 3 and sorted([*kept, *held]) == list(range(11))
    assert list(held) == sorted(held) and len(held_out(5, 0.01, 0)[1]) == 1
    with pytest.raises(ValueError, match="dev_fraction=1.0: expected a number from 0 to below 1"):
        held_out(11, 1.0, 0)
    with pytest.raises(ValueError, match="The training part has 1 example"):
        held_out(1, 0.1, 0)
