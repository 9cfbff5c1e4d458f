"""Penalties, by definition."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

penalties = ka.generation.penalties
random = np.random.default_rng(0)
V = 7
TOKENS = np.array([[-1, -1, 3, 3, 0, -1, -1], [5, 1, 5, 5, 2, -1, -1]], "int32")
LOGITS = random.normal(size=(2, V), scale=3).astype("float32")
HISTORY = ka.generation.TokenHistory(TOKENS, count=5, begin=3, vocabulary_size=V)


def by_definition(change):
    changed = LOGITS.copy()
    for b in range(2):
        for i in range(V):
            changed[b, i] = change(LOGITS[b, i], (TOKENS[b] == i).sum())
    return changed


def ctrl(logit, times):
    if not times:
        return logit
    return logit / 1.3 if logit > 0 else logit * 1.3


@pytest.mark.parametrize(
    ("penalty", "change"),
    [
        (penalties.Repetition(1.3), ctrl),
        (penalties.Repetition(1.0), lambda logit, times: logit),
        (
            penalties.Frequency(each=0.5, once=0.25),
            lambda logit, times: logit - 0.5 * times - 0.25 * (times > 0),
        ),
    ],
    ids=["CTRL", "none", "frequency"],
)
def test_penalties_by_definition(penalty, change):
    result = ops.convert_to_numpy(penalty(ops.convert_to_tensor(LOGITS), HISTORY))
    np.testing.assert_allclose(result, by_definition(change), rtol=1e-6)
    assert penalties.get(keras.saving.serialize_keras_object(penalty)) == penalty


def test_padding_is_not_written():
    assert ops.convert_to_numpy(HISTORY.occurrences()).tolist() == [
        [1, 0, 0, 2, 0, 0, 0],
        [0, 1, 1, 0, 0, 3, 0],
    ]
    assert ops.convert_to_numpy(HISTORY.last(4)).tolist() == [[-1, 3, 3, 0], [1, 5, 5, 2]]
    assert ops.convert_to_numpy(HISTORY.last(6))[1].tolist() == [-1, 5, 1, 5, 5, 2]


def test_bad_penalties_are_refused():
    with pytest.raises(ValueError, match=r"Repetition\(factor=0\).*above 0"):
        penalties.Repetition(0)
    with pytest.raises(ValueError, match=r"Frequency\(each='much'\)"):
        penalties.Frequency(each="much")
    with pytest.raises(ValueError, match="penalties=1.2: expected a Penalty"):
        penalties.get(1.2)
