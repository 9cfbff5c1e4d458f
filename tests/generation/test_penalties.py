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


def follow_rules(logits, new, rules):
    """Whisper's rules as in OpenAI's code, for one row with the new tokens `new`."""
    logits, first, end = logits.copy(), rules.first_id, rules.end_token_id
    logits[list(rules.forbidden_ids)] = -1e9
    logits[end + 1 : first] = -1e9
    last_is_time = len(new) >= 1 and new[-1] >= first
    before_is_time = len(new) < 2 or new[-2] >= first
    if last_is_time and before_is_time:
        logits[first:] = -1e9
    elif last_is_time:
        logits[:end] = -1e9
    if times := [i for i in new if i >= first]:
        least = times[-1] if last_is_time and not before_is_time else times[-1] + 1
        logits[first:least] = -1e9
    if not new:
        logits[:first] = -1e9
        logits[first + rules.latest_first + 1 :] = -1e9
    if np.logaddexp.reduce(logits[first:]) > logits[:first].max():
        logits[:first] = -1e9
    return logits


@pytest.mark.parametrize(
    "new",
    [[], [6], [6, 1], [7, 0, 8], [6, 1, 7, 7], [6, 2, 8, 8, 1], [6, 2, 9, 9, 1, 0]],
)
def test_timestamps_follow_the_rules_of_whisper(new):
    """Ids 0 to 3 are text, 3 is never generated, 4 ends, 5 is special, and times begin at 6."""
    rules = penalties.Timestamps(6, 4, forbidden_ids=(3,), latest_first=2)
    tokens = np.full((40, 9), -1, "int32")
    tokens[:, :2], tokens[:, 2 : 2 + len(new)] = [5, 9], new
    history = ka.generation.TokenHistory(tokens, count=2 + len(new), begin=2, vocabulary_size=12)
    logits = random.normal(size=(40, 12), scale=2).astype("float32")
    result = ops.convert_to_numpy(rules(ops.convert_to_tensor(logits), history))
    expected = [follow_rules(row, new, rules) for row in logits]
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert penalties.get(keras.saving.serialize_keras_object(rules)) == rules


def test_timestamps_come_after_the_end_id():
    with pytest.raises(ValueError, match="expected timestamps after the end id"):
        penalties.Timestamps(first_id=3, end_token_id=3)
