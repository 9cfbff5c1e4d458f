"""Prefix beam search: likely labels of CTC logits, all their alignments added up."""

import collections
import math

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
    """The most likely labels of one utterance (Graves, 2012; Hannun et al., 2014, algorithm 1).

    Greedy decoding finds the best path; here the paths that give the same labels are added up, and
    a language model may have its say. It runs in NumPy, beside a model or a file.

    Args:
        logits: float (T, V), of the frames of one utterance, padding cut off.
        beam_width: int, how many prefixes are kept after each frame.
        blank_id: int, the class between labels.
        num_results: int, how many are returned, at most `beam_width`.
        words: the only words that there are, each a tuple of labels; None for any labels. No word
            at all may be said, too.
        separator: int, the label between two words, such as that of a space; None where one follows
            the other.
        several: bool, whether more than one word may be said.
        language_model: function of a tuple of labels and the next label to the log of its
            probability after them; or None. It is called once for each prefix that is met.
        language_weight: float, by which its logs are multiplied.
        label_bonus: float, added for every label, as a language model prefers few of them.

    Returns:
        list of (labels, score), the best first: labels a tuple of ints, and the log of their
        probability with what the language model and the bonus add. With `words` these are
        probabilities of such labels among all others, and there are fewer results, even none, where
        few prefixes of the beam end with a word.

    ```python
    import numpy as np
    import keras_attention as ka

    # The best path is two blanks (0.36), yet "1" has three paths: 0.24 + 0.24 + 0.16.
    logits = np.log([[0.6, 0.4], [0.6, 0.4]])
    (labels, score), *_ = ka.generation.search_ctc_prefixes(logits)
    assert labels == (1,) and abs(np.exp(score) - 0.64) < 1e-6

    logits = np.log([[0.2, 0.7, 0.1], [0.2, 0.1, 0.7]])  # it sounds like (1, 2), which is no word
    (labels, score), *_ = ka.generation.search_ctc_prefixes(logits, words=[(2,)])
    assert labels == (2,)
    ```
    """
    logits = np.asarray(logits, "float64")
    if logits.ndim != 2:
        raise ValueError(
            f"logits has the shape {logits.shape}: expected (T, V), those of one utterance. Call "
            "it for each row of a batch, without its padding."
        )
    owner = "search_ctc_prefixes"
    checks.check_whole_number(owner, "beam_width", beam_width)
    checks.check_whole_number(owner, "num_results", num_results, most=beam_width)
    checks.check_whole_number(owner, "blank_id", blank_id, least=0, most=logits.shape[1] - 1)
    if words is not None:
        words = _Words(words, separator, several, blank_id, logits.shape[1])
    frames = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    added = {(): 0.0}  # of the language model and the bonus, by prefix

    def add(prefix, label):
        longer = (*prefix, label)
        if longer not in added:
            added[longer] = added[prefix] + label_bonus
            if language_model is not None:
                added[longer] += language_weight * language_model(prefix, label)
        return longer

    beam = {(): (0.0, _NEVER)}  # logs of the probabilities of paths that end in a blank, or not
    for frame in frames:
        beam = _extend(beam, frame, blank_id, beam_width, add, added, words)
    scored = [
        (prefix, float(np.logaddexp(*ends)) + added[prefix])
        for prefix, ends in beam.items()
        if words is None or words.can_end(prefix)
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:num_results]


class _Words:
    """Sequences of known words, label by label."""

    def __init__(self, words, separator, several, blank_id, classes):
        self.separator, self.words = separator, {tuple(map(int, word)) for word in words}
        self.several = several
        self._following = collections.defaultdict(set)  # labels, by how a word begins
        self._begun = {(): frozenset([()])}  # of a prefix, all that its last word may be so far
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
            raise ValueError("words is empty: give some, or None for any labels.")

    def list_labels(self, prefix):
        """What may come after a prefix."""
        return set().union(*(self._following[begun] for begun in self._find_begun(prefix)))

    def can_end(self, prefix):
        return not prefix or any(begun in self.words for begun in self._find_begun(prefix))

    def _find_begun(self, prefix):
        """Return the labels since the last word of a prefix, a set: without separators there may be
        several ways to cut it into words.
        """
        if prefix not in self._begun:
            *before, label = prefix
            found = set()
            for begun in self._find_begun(tuple(before)):
                if label not in self._following[begun]:
                    continue
                longer = () if label == self.separator else (*begun, label)
                follows = self.several and self.separator is None and longer in self.words
                found |= {longer, ()} if follows else {longer}
            self._begun[prefix] = frozenset(found)
        return self._begun[prefix]


def _extend(beam, frame, blank_id, beam_width, add, added, words):
    """Return the beam after one more frame (V,) of logs of probabilities."""
    found = collections.defaultdict(lambda: [_NEVER, _NEVER])

    def join(prefix, end, value):
        found[prefix][end] = np.logaddexp(found[prefix][end], value)

    best = [int(label) for label in np.argsort(-frame) if label != blank_id][:beam_width]
    for prefix, (in_blank, in_label) in beam.items():
        either = np.logaddexp(in_blank, in_label)
        join(prefix, 0, either + frame[blank_id])
        if prefix:
            join(prefix, 1, in_label + frame[prefix[-1]])
        for label in best if words is None else words.list_labels(prefix):
            again = prefix and label == prefix[-1]  # a second one needs a blank between
            join(add(prefix, label), 1, (in_blank if again else either) + frame[label])
    kept = sorted(found, key=lambda prefix: np.logaddexp(*found[prefix]) + added[prefix])
    return {prefix: tuple(found[prefix]) for prefix in kept[-beam_width:]}
