"""Last layers by their definitions: greedy CTC decoding, and spans of answers."""

import itertools

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports

random = np.random.default_rng(0)


def collapse(path, blank):
    labels = [label for label, _ in itertools.groupby(path) if label != blank]
    return labels + [blank] * (len(path) - len(labels))


@pytest.mark.parametrize("blank", [0, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_ctc_decoding_by_definition(blank, masked):
    paths = random.integers(0, 4, size=(50, 9))
    logits = np.eye(4)[paths] + random.random((50, 9, 4)) * 0.9
    mask = np.arange(9) < random.integers(0, 10, size=(50, 1)) if masked else None
    decoded = ka.blocks.GreedyCTCDecoder(blank)(logits, mask=mask)
    if masked:
        paths = np.where(mask, paths, blank)
    np.testing.assert_array_equal(decoded, [collapse(path, blank) for path in paths])


@pytest.mark.slow
@pytest.mark.tensorflow
def test_ctc_decoding_exports():
    logits = keras.Input((None, 4), name="logits")
    lengths = keras.Input((), dtype="int32", name="lengths")
    x = ka.blocks.LengthMask()(logits, lengths)
    model = keras.Model([logits, lengths], ka.blocks.GreedyCTCDecoder(name="labels")(x))
    batch = {"logits": random.normal(size=(3, 12, 4)), "lengths": np.array([12, 5, 0], "int32")}
    assert_exports(model, sequence_length=8, examples=[batch])


def test_span_logits_are_those_of_the_second_text():
    logits = random.normal(size=(2, 5, 2)).astype("float32")
    segments = np.array([[i % 3 == t % 2 for t in range(5)] for i in range(2)], "int32")
    for no_answer in (False, True):
        output = ka.blocks.SpanLogits(no_answer)(logits, segments)
        for k, i, t in np.ndindex(2, 2, 5):
            allowed = segments[i, t] == 1 or (no_answer and t == 0)
            assert output[k][i, t] == (logits[i, t, k] if allowed else -100.0)
