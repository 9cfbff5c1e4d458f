"""Prefix beam search against the sum over all paths."""

import collections
import itertools
import re

import numpy as np
import pytest

import keras_attention as ka

search = ka.generation.search_ctc_prefixes
random = np.random.default_rng(0)


def list_all(logits, blank=0):
    """{labels: log probability} of everything that paths may say."""
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    result = collections.defaultdict(lambda: -np.inf)
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        labels = tuple(label for label, _ in itertools.groupby(path) if label != blank)
        result[labels] = np.logaddexp(result[labels], sum(logs[t, c] for t, c in enumerate(path)))
    return result


@pytest.mark.parametrize("blank", [0, 2])
def test_a_wide_beam_is_exact(blank):
    logits = random.normal(size=(5, 3)) * 2
    everything = list_all(logits, blank)
    expected = sorted(everything.items(), key=lambda pair: -pair[1])[:6]
    result = search(logits, 500, blank_id=blank, num_results=6)
    assert [labels for labels, _ in result] == [labels for labels, _ in expected]
    np.testing.assert_allclose([s for _, s in result], [s for _, s in expected], atol=1e-9)


def test_a_narrow_beam_finds_what_greedy_decoding_misses():
    logits = np.log([[0.6, 0.4], [0.6, 0.4]])
    assert not np.any(ka.blocks.GreedyCTCDecoder()(logits[None]))
    assert search(logits, 2)[0][0] == (1,)


def test_a_language_model_and_a_bonus_are_added():
    logits = random.normal(size=(4, 4))
    table = random.normal(size=(4, 4))  # one label after another, 0 is the beginning

    def after(prefix, label):
        return table[prefix[-1] if prefix else 0, label]

    def score(labels, log):
        pairs = zip((0, *labels), labels, strict=False)
        return log + 0.7 * sum(table[pair] for pair in pairs) + 0.3 * len(labels)

    expected = {labels: score(labels, log) for labels, log in list_all(logits).items()}
    settings = dict(language_model=after, language_weight=0.7, label_bonus=0.3)
    result = search(logits, 500, num_results=5, **settings)
    best = sorted(expected.items(), key=lambda pair: -pair[1])[:5]
    assert [labels for labels, _ in result] == [labels for labels, _ in best]
    np.testing.assert_allclose([s for _, s in result], [s for _, s in best], atol=1e-9)


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("separator", [3, None])
def test_words_are_the_likeliest_of_all_that_consist_of_them(separator, several):
    logits = random.normal(size=(6, 4)) * 2
    words = [(1, 2), (2,), (2, 2)] if separator else [(1, 2), (2,), (1, 2, 1)]
    pattern = "(12|2|22)(3(12|2|22))*" if separator else "(12|2|121)+"
    pattern = pattern if several else "12|2|22" if separator else "12|2|121"

    def consists(labels):
        return not labels or re.fullmatch(pattern, "".join(map(str, labels)))

    everything = {labels: log for labels, log in list_all(logits).items() if consists(labels)}
    assert len(everything) > 3
    expected = sorted(everything.items(), key=lambda pair: -pair[1])[:5]
    settings = dict(words=words, separator=separator, several=several)
    result = search(logits, 500, num_results=5, **settings)
    assert [labels for labels, _ in result] == [labels for labels, _ in expected]
    np.testing.assert_allclose([s for _, s in result], [s for _, s in expected], atol=1e-9)


def test_no_frames_give_no_labels():
    assert search(np.zeros((0, 3))) == [((), 0.0)]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(logits=np.zeros((2, 3, 4))), r"\(2, 3, 4\): expected \(T, V\)"),
        (dict(beam_width=0), "beam_width=0.*at least 1"),
        (dict(num_results=9), "num_results=9.*at most 8"),
        (dict(blank_id=3), "blank_id=3.*at most 2"),
        (dict(words=[]), "words is empty"),
        (dict(words=[(1,), (1, 2)], separator=2), r"\(1, 2\): expected.*separator 2"),
        (dict(words=[(1, 3)]), r"\(1, 3\): expected labels from 0 to 2"),
        (dict(words=[()]), r"\(\): expected labels"),
    ],
)
def test_invalid_searches_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        search(**{"logits": np.zeros((2, 3)), **arguments})
