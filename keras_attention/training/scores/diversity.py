"""Diversity of generated texts: distinct n-grams, and the most common text."""

import collections


def compute_distinct(texts, size):
    """Compute the share of distinct n-grams of words among all n-grams.

    Li et al. (2016, section 5.2) divide by the number of words, which gives less for n above 1.

    Args:
        texts: list of str.
        size: int n.

    Returns:
        float from 0 to 1. 0 if no text has n words.

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
    """Compute the share of the most common text, from 0 to 1.

    ```python
    import keras_attention as ka

    assert ka.training.compute_repetition(["Yes.", "No.", "Yes.", "Why?"]) == 0.5
    ```
    """
    counts = collections.Counter(texts)
    return max(counts.values()) / len(texts) if texts else 0.0


def score_diversity(texts):
    """Compute `"distinct_1"`, `"distinct_2"` and `"commonest_reply"`, each from 0 to 1.

    ```python
    import keras_attention as ka

    scores = ka.training.score_diversity(["Yes.", "No.", "Yes.", "Why?"])
    assert scores == {"distinct_1": 0.75, "distinct_2": 0.0, "commonest_reply": 0.5}
    ```
    """
    return {
        "distinct_1": compute_distinct(texts, 1),
        "distinct_2": compute_distinct(texts, 2),
        "commonest_reply": compute_repetition(texts),
    }
