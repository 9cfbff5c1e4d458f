"""Data of masked language models: which tokens are hidden, how, and how often."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Characters, Subwords
from keras_attention.data.tokenizers.subwords import OwnTokenizer

pytestmark = pytest.mark.tensorflow
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXT = LETTERS * 40
CHARACTERS = Characters.build([LETTERS], mask_token=True)
(TOKENS,) = CHARACTERS.encode([TEXT])


def batch_windows(tokens, window_length, tokenizer, batch_size=32, *, seed=0, **options):
    windows = ka.data.MaskedWindows(tokens, window_length, tokenizer, **options)
    return ka.data.batches(windows, batch_size=batch_size, seed=seed)


def epoch(batches):
    """Return ids and labels (n, T) of a whole pass, and the original tokens."""
    parts = [(np.asarray(ids), np.asarray(labels)) for ids, labels in batches]
    assert {a.dtype.name for part in parts for a in part} == {"int32"}
    ids, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return ids, labels


def whole(ids, labels):
    """Return the original tokens."""
    return np.where(labels >= 0, labels, ids)


def test_shares_of_hidden_tokens_are_those_of_bert():
    ids, labels = epoch(batch_windows(TOKENS, 100, CHARACTERS, 50, steps=40))
    selected = labels >= 0
    assert ids.shape == (2000, 100) and (selected.sum(axis=1) == 15).all()
    np.testing.assert_allclose(selected.mean(axis=0), 0.15, atol=0.05)  # every place alike
    masked, unchanged = ids[selected] == 4, ids[selected] == labels[selected]
    assert abs(masked.mean() - 0.8) < 0.01
    assert (
        abs(unchanged.mean() - (0.1 + 0.1 / 26)) < 0.01
    )  # a random token may be the one that it was
    replaced = ids[selected][~masked & ~unchanged]
    counts = np.bincount(replaced, minlength=len(CHARACTERS))
    assert (counts[:5] == 0).all() and counts[5:].min() > 0.7 * counts[5:].mean()
    steps = np.diff(whole(ids, labels), axis=1)  # ids follow the alphabet: each window is text
    assert len(np.unique(steps)) == 2


def test_masks_change_by_batch_and_epoch_and_repeat_by_seed():
    def make(seed):
        return batch_windows(TOKENS, 20, CHARACTERS, 8, steps=4, seed=seed)

    batches = make(1)
    first, second = epoch(batches), epoch(batches)
    assert len(batches) == 4 and (first[1] != second[1]).any()
    np.testing.assert_array_equal(epoch(make(1)), first)
    assert (epoch(make(2))[1] != first[1]).any()
    rows = {tuple(row) for row in (first[1] >= 0)}
    assert len(rows) > 25  # of 32: windows do not share their masks


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 19, 20, 21, 80, 81, 97])
def test_consecutive_windows_hide_the_same_tokens_in_every_pass(length):
    tokens = TOKENS[:length]
    batches = batch_windows(tokens, 20, CHARACTERS, 2, seed=3)
    ids, labels = epoch(batches)
    np.testing.assert_array_equal(epoch(batches), (ids, labels))
    count = -(-length // 20)
    assert ids.shape == (count, 20) and len(batches) == len(list(batches)) == -(-count // 2)
    text = whole(ids, labels).reshape(-1)
    assert text[:length].tolist() == tokens.tolist() and not text[length:].any()
    expected = [max(1, round(0.15 * min(20, length - 20 * k))) for k in range(count)]
    assert (labels >= 0).sum(axis=1).tolist() == expected
    other = epoch(batch_windows(tokens, 20, CHARACTERS, 2, seed=4))
    assert length == 2 or (other[1] != labels).any()


def test_rates():
    def ids_and_labels(**rates):
        return epoch(batch_windows(TOKENS, 100, CHARACTERS, 50, **rates))

    ids, labels = ids_and_labels(mask_selection_rate=1, mask_token_rate=1, random_token_rate=0)
    assert (ids[labels >= 0] == 4).all() and (labels >= 0).sum() == len(TOKENS)
    ids, labels = ids_and_labels(mask_token_rate=0, random_token_rate=0)
    assert (whole(ids, labels) == ids).all() and (labels >= 0).any()
    ids, labels = ids_and_labels(mask_token_rate=0, random_token_rate=1)
    assert (ids != 4).all() and ((ids != labels)[labels >= 0]).mean() > 0.9


def test_special_tokens_are_never_labels():
    tokens = np.array([1, 2, 3, 4, 7, 1, 2, 3, 4, 8] * 5)
    for steps in (None, 3):
        ids, labels = epoch(
            batch_windows(tokens, 10, CHARACTERS, steps=steps, mask_selection_rate=1.0)
        )
        assert set(labels[labels >= 0]) == {7, 8} and (labels >= 0).mean() == 0.2
    ids, labels = epoch(batch_windows(np.ones(10, int), 5, CHARACTERS))
    assert (labels == -1).all() and (ids == 1).all()


def test_a_mask_in_the_middle_of_the_vocabulary():
    """SentencePiece models of other programs may have it there."""

    class Tokenizer(OwnTokenizer):
        mask_token_id = 8

        def __len__(self):
            return 12

    ids, labels = epoch(
        batch_windows(np.full(1000, 5), 10, Tokenizer(), mask_token_rate=0, random_token_rate=1)
    )
    assert set(ids[labels >= 0]) == {4, 5, 6, 7, 9, 10, 11}


def test_subwords():
    lines = ["the cat sat on the mat", "the cats sit", "a cat, the mat"] * 5
    subwords = Subwords.build(lines, 20, mask_token=True)
    (tokens,) = subwords.encode([" ".join(lines)])
    ids, labels = epoch(batch_windows(tokens, 16, subwords, steps=5))
    assert ids.max() < len(subwords) and (ids == subwords.mask_token_id).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(tokens=[5]), r"MaskedWindows: tokens of shape \(1,\)"),
        (dict(tokenizer=Characters.build(["ab"])), r"has no \[MASK\]: build it with mask_token=Tr"),
        (dict(window_length=0), r"window_length=0\): .* at least 1"),
        (dict(batch_size=1.5), r"batch_size=1.5\)"),
        (dict(steps=0), r"steps=0\)"),
        (dict(steps=1, window_length=2000), "has 1040 tokens: too few for a window of 2000"),
        (dict(mask_selection_rate=0), "mask_selection_rate=0.: expected a share"),
        (dict(mask_token_rate=1.2), "mask_token_rate=1.2.: expected a share, from 0 to 1"),
        (dict(mask_token_rate=0.9, random_token_rate=0.2), "their sum is at most 1"),
    ],
)
def test_errors(options, message):
    arguments = dict(tokens=TOKENS, window_length=10, tokenizer=CHARACTERS) | options
    with pytest.raises(ValueError, match=message):
        batch_windows(**arguments)
