"""The ids that a parser may write next, compared with a stack machine in Python."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.special_ids import CLOSE, END, START

L, TAGS, SPARE = 3, 2, 2  # ids 4 to 6 open, 7 and 8 are tags


def list_allowed(ids, num_words):
    """Return the ids that may follow `ids`, by a stack of numbers of children."""
    stack, read, opened, ended = [], 0, 0, False
    for i in ids[1:]:
        if i == END:
            ended = True
        elif i == CLOSE:
            stack.pop()
            if stack:
                stack[-1] += 1
        elif i < 4 + L:
            stack.append(0)
            opened += 1
        else:
            stack[-1] += 1
            read += 1
    if ended:
        return set()
    if opened and not stack:
        return {END}
    allowed, left = set(), read < num_words
    if left and opened < SPARE + 2 * read:
        allowed |= set(range(4, 4 + L))
    if left and stack:
        allowed |= set(range(4 + L, 4 + L + TAGS))
    if stack and stack[-1] and (len(stack) > 1 or not left):
        allowed.add(CLOSE)
    return allowed


@pytest.mark.parametrize("num_words", [1, 2, 5])
def test_allowed_ids_equal_those_of_a_stack_machine(num_words):
    layer, random = ka.blocks.ParserState(L, TAGS, SPARE), np.random.default_rng(num_words)
    words = random.normal(size=(1, 6, 7)).astype("float32")
    mask = np.arange(6)[None] < num_words
    for _ in range(12):
        ids = [START]
        while len(ids) < 99 and (allowed := list_allowed(ids, num_words)):
            ids.append(int(random.choice(sorted(allowed))))
        assert ids[-1] == END  # every walk along allowed ids ends
        word, depth, allowed = (np.array(x)[0] for x in layer(np.array([ids]), words, mask))
        read = 0
        for k in range(len(ids)):
            read += ids[k] >= 4 + L
            expected = np.isin(
                np.arange(4 + L + TAGS), sorted(list_allowed(ids[: k + 1], num_words))
            )
            np.testing.assert_array_equal(allowed[k], expected)
            np.testing.assert_array_equal(
                word[k], words[0, read] if read < num_words else 0 * word[k]
            )
        opens = np.isin(ids, range(4, 4 + L)).cumsum() - (np.array(ids) == CLOSE).cumsum()
        np.testing.assert_array_equal(depth, opens)


def test_forbidden_labels_never_get_the_highest_logit():
    logits = np.array([[500.0, -900.0, -3.0]], "float32")
    limited = np.array(ka.blocks.AllowedLogits()(logits, np.array([[0.0, 1.0, 1.0]])))
    assert limited.tolist() == [[-100.0, -50.0, -3.0]]


@pytest.mark.parametrize("name", ["num_constituents", "num_tags", "spare_constituents"])
def test_refuses_counts_below_one(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        ka.blocks.ParserState(**{**dict(num_constituents=2, num_tags=2), name: 0})
