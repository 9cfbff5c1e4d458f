"""How different texts are that a model has written: distinct n-grams, and the commonest text."""

import collections


def compute_distinct(texts, size):
    """Distinct n-grams of words as a share of all of them.

    Li et al. (2016, section 5.2) divide by the number of words, which gives less for n above 1.

    Args:
        texts: list of str.
        size: int n.

    Returns:
        float from 0 to 1; 0 where no text has so many words.

    Example:

    ```python
    import keras_attention as ka

    assert ka.training.compute_distinct(["I see", "I see it"], 1) == 3 / 5
    assert ka.training.compute_distinct(["I see", "I see it"], 2) == 2 / 3
    ```
    """
    found = [
        tuple(words[k : k + size])
        for words in map(str.split, texts)
        for k in range(len(words) - size + 1)
    ]
    return len(set(found)) / len(found) if found else 0.0


def compute_repetition(texts):
    """The share of texts that are the commonest one, from 0 to 1.

    Example:

    ```python
    import keras_attention as ka

    assert ka.training.compute_repetition(["Yes.", "No.", "Yes.", "Why?"]) == 0.5
    ```
    """
    counts = collections.Counter(texts)
    return max(counts.values()) / len(texts) if texts else 0.0


def score_diversity(texts):
    """All of it: `"distinct_1"`, `"distinct_2"` and `"commonest_reply"`, from 0 to 1.

    Example:

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
