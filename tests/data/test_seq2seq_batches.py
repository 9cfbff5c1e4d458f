import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Characters, Pair, SequencePreprocessor, seq2seq_batches

pytestmark = pytest.mark.tensorflow
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = Characters.build([LETTERS])
PREPROCESSOR = SequencePreprocessor(CHARACTERS, CHARACTERS)


def pairs_of(lengths):
    """Distinct pairs: sources and targets of these lengths, whose first letters say which."""
    return [
        Pair(LETTERS[i] * source, LETTERS[i] * (target - 1) + "z")
        for i, (source, target) in enumerate(lengths)
    ]


# (source, target), to which END and BEGIN, or END, are added: longer sides of 4 to 26
LENGTHS = [(3, 3), (7, 2), (2, 7), (8, 4), (5, 15), (25, 3), (3, 24), (6, 6), (1, 1), (14, 14)]


def read(batches):
    """The pairs that batches hold, read back from the ids."""
    found = []
    for inputs, labels in batches:
        sources, targets = np.asarray(inputs["source_ids"]), np.asarray(inputs["target_ids"])
        labels = np.asarray(labels)
        assert sources.dtype == targets.dtype == labels.dtype == np.int32
        assert targets.shape == labels.shape and len(sources) == len(targets)
        for source, target, label in zip(sources, targets, labels, strict=True):
            n, t = (source != 0).sum(), (target != 0).sum()
            assert (
                (source[n:] == 0).all() and source[n - 1] == 3 and not (source[: n - 1] < 4).any()
            )
            assert target[0] == 2 and (label[t:] == -1).all() and label[t - 1] == 3
            np.testing.assert_array_equal(target[1:t], label[: t - 1])  # what is asked for is next
            found += [Pair(*CHARACTERS.decode([source, label]))]
    return found


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pair_once_with_its_neighbours_in_length(shuffle):
    pairs = pairs_of(LENGTHS)
    batches = seq2seq_batches(pairs, PREPROCESSOR, 3, shuffle=shuffle, seed=1)
    assert sorted(read(batches)) == sorted(pairs) and len(batches) == len(list(batches)) == 4
    # Sides up to 8 long: 5 pairs. To 16: 3; to 24: none, to the longest, 26: 2.
    sizes = sorted(len(labels) for _, labels in batches)
    assert sizes == [2, 2, 3, 3]


def test_both_sides_are_padded_to_edges_of_their_own():
    pairs = pairs_of([(25, 3), (24, 3)])
    ((inputs, labels),) = seq2seq_batches(pairs, PREPROCESSOR)
    assert inputs["source_ids"].shape == (2, 26) and labels.shape == (2, 4)
    ((inputs, labels),) = seq2seq_batches(pairs, PREPROCESSOR, edges=[30])
    assert inputs["source_ids"].shape == (2, 26) and labels.shape == (2, 4)
    pairs = pairs_of([(25, 3), (24, 3), (3, 25)])
    ((inputs, labels),) = seq2seq_batches(pairs, PREPROCESSOR, edges=[8])
    assert inputs["source_ids"].shape == (3, 26) and labels.shape == (3, 26)
    first, second = seq2seq_batches(pairs, PREPROCESSOR, 2, edges=[8])
    assert first[1].shape == (2, 8) and second[0]["source_ids"].shape == (1, 8)


def test_token_limit():
    pairs = pairs_of(LENGTHS)
    batches = seq2seq_batches(pairs, PREPROCESSOR, 64, max_tokens=32)
    assert sorted(read(batches)) == sorted(pairs) and len(batches) == len(list(batches))
    for inputs, labels in batches:
        assert np.size(inputs["source_ids"]) <= 32 and np.size(labels) <= 32
    sizes = sorted(len(labels) for _, labels in batches)
    assert sizes == [1, 1, 1, 1, 2, 4]  # 4 of 8, 2 of 16 and 1 of 26 are 32 tokens at most
    both = seq2seq_batches(pairs, PREPROCESSOR, 2, max_tokens=32)
    assert max(len(labels) for _, labels in both) == 2
    with pytest.raises(ValueError, match="max_tokens=20: the longest pairs are padded to 26"):
        seq2seq_batches(pairs, PREPROCESSOR, max_tokens=20)


def test_shuffling_changes_by_epoch_and_repeats_by_seed():
    pairs = pairs_of([(4, 4)] * 20)

    def epochs(seed):
        batches = seq2seq_batches(pairs, PREPROCESSOR, 4, shuffle=True, seed=seed)
        return [read(batches) for _ in range(2)]

    first, second = epochs(1)
    assert first != second and [first, second] == epochs(1) and first != epochs(2)[0]
    assert read(seq2seq_batches(pairs, PREPROCESSOR, 4)) == pairs


def test_fits():
    source, target = (
        keras.Input((None,), name="source_ids"),
        keras.Input((None,), name="target_ids"),
    )
    embed = keras.layers.Embedding(len(CHARACTERS), 8)
    x = embed(target) + keras.ops.mean(embed(source), axis=1, keepdims=True)
    model = keras.Model(
        {"source_ids": source, "target_ids": target}, keras.layers.Dense(len(CHARACTERS))(x)
    )
    model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy(), jit_compile=False)
    batches = seq2seq_batches(pairs_of(LENGTHS), PREPROCESSOR, 4, shuffle=True)
    history = model.fit(batches, epochs=2, shuffle=False, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


def test_errors():
    with pytest.raises(ValueError, match="pairs is empty"):
        seq2seq_batches([], PREPROCESSOR)
    with pytest.raises(ValueError, match=r"batch_size=0\): .* at least 1"):
        seq2seq_batches(pairs_of([(1, 1)]), PREPROCESSOR, 0)
    with pytest.raises(ValueError, match=r"max_tokens=0\): .* at least 1"):
        seq2seq_batches(pairs_of([(1, 1)]), PREPROCESSOR, max_tokens=0)
    with pytest.raises(ValueError, match="has no source"):
        seq2seq_batches(pairs_of([(1, 1)]), SequencePreprocessor(CHARACTERS))
