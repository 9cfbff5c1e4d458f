"""Prefix beam search, which finds the most probable labels for the logits of a CTC model."""

import math
from collections import defaultdict

import numpy as np

from keras_attention.core import checks

_NEVER = -math.inf


def search_ctc_prefixes(
    logits,
    beam_width=8,
    *,
    blank_id=0,
    num_results=1,
    words=None,
    separator=None,
    several=True,
    language_model=None,
    language_weight=1.0,
    label_bonus=0.0,
):
    """Find the most probable label sequences for the CTC logits of one utterance.

    A path is one label or blank for each frame, and many paths give the same label sequence. Greedy
    decoding finds the most probable path. This prefix beam search (Hannun et al., 2014, algorithm
    1) adds the probabilities of all paths with the same labels, and can use a language model. It
    runs in NumPy.

    Args:
        logits: float (T, V), for T frames of one utterance without padding and V labels with the
            blank.
        beam_width: int, number of prefixes that are kept after each frame.
        blank_id: int, the id of the blank.
        num_results: int, the maximum number of results, at most `beam_width`.
        words: list of the allowed words, each a tuple of labels. An empty result is allowed too.
            None allows any labels.
        separator: int, the label between two words, such as a space. None if there is no label
            between words.
        several: bool, whether a result may have more than one word.
        language_model: function that returns the log-probability of a label, from a tuple of the
            previous labels and the label. It is called once for each prefix. None for no language
            model.
        language_weight: float, multiplies the log-probabilities of the language model.
        label_bonus: float, added to the score for each label, because language models prefer short
            results.

    Returns:
        A list of (labels, score), the best first. `labels` is a tuple of ints. `score` is the
        log-probability of the labels, plus the terms of the language model and the bonus. With
        `words` the list can be shorter or empty, because only complete words are results.

    Raises:
        ValueError: `logits` is not of shape (T, V), or an argument is out of its range.

    ```python
    import numpy as np
    import keras_attention as ka

    # The best path is two blanks (0.36), yet "1" has three paths: 0.24 + 0.24 + 0.16.
    logits = np.log([[0.6, 0.4], [0.6, 0.4]])
    (labels, score), *_ = ka.generation.search_ctc_prefixes(logits)
    assert labels == (1,) and abs(np.exp(score) - 0.64) < 1e-6

    logits = np.log([[0.2, 0.7, 0.1], [0.2, 0.1, 0.7]])  # the best path is (1, 2), not a word
    (labels, score), *_ = ka.generation.search_ctc_prefixes(logits, words=[(2,)])
    assert labels == (2,)
    ```
    """
    logits = np.asarray(logits, "float64")
    if logits.ndim != 2:
        raise ValueError(
            f"logits has the shape {logits.shape}: expected (T, V) of one utterance. Pass each row "
            "of a batch by itself, without its padding."
        )
    caller = "search_ctc_prefixes"
    checks.check_whole_number(caller, "beam_width", beam_width)
    checks.check_whole_number(caller, "num_results", num_results, most=beam_width)
    checks.check_whole_number(caller, "blank_id", blank_id, least=0, most=logits.shape[1] - 1)
    if words is not None:
        words = _Words(words, separator, several, blank_id, logits.shape[1])
    frames = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    added = {(): 0.0}  # {prefix: score from language model and bonus}

    def add(prefix, label):
        longer = (*prefix, label)
        if longer not in added:
            added[longer] = added[prefix] + label_bonus
            if language_model is not None:
                added[longer] += language_weight * language_model(prefix, label)
        return longer

    beam = {(): (0.0, _NEVER)}  # log-probabilities of paths that end in a blank, or in a label
    for frame in frames:
        beam = _extend(beam, frame, blank_id, beam_width, add, added, words)
    scored = [
        (prefix, float(np.logaddexp(*ends)) + added[prefix])
        for prefix, ends in beam.items()
        if words is None or words.can_end(prefix)
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:num_results]


class _Words:
    """Looks up which labels can follow a prefix, the labels so far, if words are restricted."""

    def __init__(self, words, separator, several, blank_id, classes):
        self.separator, self.words = separator, {tuple(map(int, word)) for word in words}
        self.several = several
        self._following = defaultdict(set)  # beginning of a word -> possible next labels
        self._begun = {(): frozenset([()])}  # prefix -> possible beginnings of its last word
        for word in self.words:
            if not word or not {*word} <= {*range(classes)} - {blank_id, separator}:
                raise ValueError(
                    f"words has {word}: expected labels from 0 to {classes - 1} other than the "
                    f"blank {blank_id} and the separator {separator}."
                )
            for i, label in enumerate(word):
                self._following[word[:i]].add(label)
            if several and separator is not None:
                self._following[word].add(separator)
        if not self.words:
            raise ValueError("words is empty: expected at least one word, or None for any labels.")

    def list_labels(self, prefix):
        """Return the set of labels that may follow a prefix."""
        return set().union(*(self._following[begun] for begun in self._find_begun(prefix)))

    def can_end(self, prefix):
        return not prefix or any(begun in self.words for begun in self._find_begun(prefix))

    def _find_begun(self, prefix):
        """Return the labels of the last, perhaps incomplete word of a prefix, a set of tuples.

        Without a separator, there can be several ways to split the prefix into words.
        """
        if prefix not in self._begun:
            *before, label = prefix
            beginnings = set()
            for begun in self._find_begun(tuple(before)):
                if label not in self._following[begun]:
                    continue
                longer = () if label == self.separator else (*begun, label)
                follows = self.several and self.separator is None and longer in self.words
                beginnings |= {longer, ()} if follows else {longer}
            self._begun[prefix] = frozenset(beginnings)
        return self._begun[prefix]


def _extend(beam, frame, blank_id, beam_width, add, added, words):
    """Return the best prefixes and their scores after one more frame (V,) of log-probabilities.

    Args:
        beam: dict {prefix: log-probabilities of its paths that end in a blank, and in a label}.
        frame: floats (V,), the log-probabilities of the labels in the frame.
        blank_id, beam_width, words: arguments of `search_ctc_prefixes`, `words` as `_Words` or
            None.
        add: function that returns a prefix with one more label, and stores its entry in `added`.
        added: dict {prefix: the terms of language model and bonus}.
    """
    scores = defaultdict(lambda: [_NEVER, _NEVER])

    def join(prefix, end, value):
        scores[prefix][end] = np.logaddexp(scores[prefix][end], value)

    best = [int(label) for label in np.argsort(-frame) if label != blank_id][:beam_width]
    for prefix, (in_blank, in_label) in beam.items():
        either = np.logaddexp(in_blank, in_label)
        join(prefix, 0, either + frame[blank_id])
        if prefix:
            join(prefix, 1, in_label + frame[prefix[-1]])
        for label in best if words is None else words.list_labels(prefix):
            again = prefix and label == prefix[-1]  # repeating a label needs a blank in between
            join(add(prefix, label), 1, (in_blank if again else either) + frame[label])
    ranked = sorted(scores, key=lambda prefix: np.logaddexp(*scores[prefix]) + added[prefix])
    return {prefix: tuple(scores[prefix]) for prefix in ranked[-beam_width:]}
