"""Scores for the diversity of generated text, such as the replies of a dialog model."""

import collections


def compute_distinct(texts, size):
    """Return the number of distinct word n-grams in a list of strings, divided by all n-grams.

    Li et al. (2016, section 5.2) divide by the number of words instead, which gives a smaller value
    for n > 1.

    Args:
        texts: list of str, split into words at spaces.
        size: int, the n of the n-grams. The result is 0 if no string has n words.

    ```python
    import keras_attention as ka

    assert ka.training.compute_distinct(["I see", "I see it"], 1) == 3 / 5
    assert ka.training.compute_distinct(["I see", "I see it"], 2) == 2 / 3
    ```
    """
    ngrams = [
        tuple(words[k : k + size])
        for words in map(str.split, texts)
        for k in range(len(words) - size + 1)
    ]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def compute_repetition(texts):
    """Return the share of `texts` that equal the most common string.

    The share is 0.5 for ["Yes.", "No.", "Yes.", "Why?"].
    """
    counts = collections.Counter(texts)
    return max(counts.values()) / len(texts) if texts else 0.0


def score_diversity(texts):
    """Score the diversity of `texts`, a list of str, such as the replies of a dialog model.

    Returns:
        A dict of floats from 0 to 1: `"distinct_1"` and `"distinct_2"` from `compute_distinct`, and
        `"commonest_reply"` from `compute_repetition`.
    """
    return {
        "distinct_1": compute_distinct(texts, 1),
        "distinct_2": compute_distinct(texts, 2),
        "commonest_reply": compute_repetition(texts),
    }
