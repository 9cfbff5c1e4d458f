"""SpecAugment: hidden spans and bands, the warp, and inference."""

import numpy as np
import pytest

import keras_attention as ka

X = np.ones((200, 30, 12), "float32")


def count_runs(hidden):
    """Count the runs of True in each row."""
    return (np.diff(np.pad(hidden, ((0, 0), (1, 0))).astype(int), axis=1) == 1).sum(axis=1)


def test_hidden_spans_have_at_most_their_size():
    layer = ka.blocks.SpecAugment(1, 7, num_frequency_masks=0, seed=1)
    augmented = np.asarray(layer(X, training=True))
    assert set(np.unique(augmented)) == {0, 1}
    hidden = (augmented == 0).all(axis=2)
    assert np.array_equal(hidden, (augmented == 0).any(axis=2))
    assert set(hidden.sum(axis=1)) == set(range(8))
    assert count_runs(hidden).max() == 1
    assert hidden.any(axis=0).all()  # every frame may be hidden, the last one included


def test_hides_bands_of_frequency():
    layer = ka.blocks.SpecAugment(0, 7, num_frequency_masks=2, frequency_mask_size=3, seed=1)
    hidden = np.asarray(layer(X, training=True)) == 0
    assert np.array_equal(hidden.any(axis=1), hidden.all(axis=1))
    assert hidden[:, 0].sum(axis=1).max() == 6 and count_runs(hidden[:, 0]).max() == 2
    assert hidden[:, 0].any(axis=0).all()


def test_spans_lie_within_an_utterance_and_its_share():
    layer = ka.blocks.SpecAugment(1, 30, num_frequency_masks=0, time_mask_ratio=0.5, seed=1)
    mask = np.repeat(np.arange(30)[None] < 10, 200, axis=0)
    hidden = np.asarray(layer(X, mask=mask, training=True))[:, :, 0] == 0
    assert not hidden[:, 10:].any()
    assert set(hidden.sum(axis=1)) == set(range(6))


def test_frequency_warp_stretches_and_compresses():
    """Use a ramp, whose features show the frequency that they come from."""
    nothing = dict(num_time_masks=0, num_frequency_masks=0)
    ramp = np.broadcast_to(np.arange(41, dtype="float32"), (300, 2, 41))
    augmented = np.asarray(
        ka.blocks.SpecAugment(frequency_warp=0.2, seed=1, **nothing)(ramp, training=True)
    )
    assert np.array_equal(augmented[:, 0], augmented[:, 1])
    factors = augmented[:, 0, 1]
    assert 0.8 <= factors.min() < 0.81 and 1.19 < factors.max() <= 1.2
    for factor, row in zip(factors, augmented[:, 0], strict=True):
        knee = 32 / max(factor, 1)
        expected = np.interp(np.arange(41), [0, knee, 40], [0, factor * knee, 40])
        np.testing.assert_allclose(row, expected, atol=1e-4)
    x = np.random.default_rng(0).normal(size=(300, 2, 41)).astype("float32")
    warped = ka.blocks.SpecAugment(frequency_warp=0.2, seed=1, **nothing)(x, training=True)
    expected = [np.interp(augmented[7, 0], np.arange(41), x[7, t]) for t in range(2)]
    np.testing.assert_allclose(np.asarray(warped)[7], expected, atol=1e-4)


def test_equal_seeds_draw_equal_masks():
    one, other = (ka.blocks.SpecAugment(frequency_mask_size=5, seed=3) for _ in range(2))
    first, second = one(X, training=True), one(X, training=True)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, other(X, training=True))
    assert np.array_equal(one(X), X)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(time_mask_ratio=1.5), "time_mask_ratio=1.5.*at most 1"),
        (dict(frequency_warp=1), "frequency_warp=1.*at most 0.99"),
        (dict(num_time_masks=-1), "num_time_masks=-1.*at least 0"),
        (dict(frequency_mask_size=13), "frequency_mask_size=13.*12 features"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.SpecAugment(**arguments)(X)
