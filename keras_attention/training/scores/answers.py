"""Exact match and F1 of answers, as the official scripts of SQuAD compute them."""

import collections
import re
import string

VERSIONS = ("1.1", "2.0")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text):
    """Return an answer without case, punctuation, English articles and extra spaces.

    (Rajpurkar et al., 2016, section 6.1: the official script.)

    ```python
    from keras_attention.training.scores.answers import normalize_answer

    assert normalize_answer("The  U.S. (an  ally)") == "us ally"
    ```
    """
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def compute_exact_match(prediction, answer):
    """Return 1.0 if two answers are equal after `normalize_answer`, else 0.0."""
    return float(normalize_answer(prediction) == normalize_answer(answer))


def compute_answer_f1(prediction, answer, version="2.0"):
    """Compute the F1 of the words of two answers, with their counts.

    Args:
        version: `"1.1"` or `"2.0"` of the official script. If one of the two has no words, 1.1
            gives 0, and 2.0 gives 1 if the other has none either.
    """
    predicted, true = (normalize_answer(text).split() for text in (prediction, answer))
    if version != "1.1" and not (predicted and true):
        return float(predicted == true)
    same = sum((collections.Counter(predicted) & collections.Counter(true)).values())
    return 2.0 * same / (len(predicted) + len(true)) if same else 0.0


def score_answers(predictions, answers, *, version="2.0"):
    """Compute exact match and F1 of predictions, each against the best of its answers.

    (Rajpurkar et al., 2016, section 6.1; 2018, *SQuAD 2.0*, section 5.)

    Args:
        predictions: list of str. Empty for no answer.
        answers: list of lists of str, human answers. Empty if the context has no answer.
        version: `"1.1"` or `"2.0"` of the official script. 2.0 drops answers of which
            `normalize_answer` leaves nothing. A question without others has no answer.

    Returns:
        dict: `"exact_match"` and `"f1"`, from 0 to 1 (the scripts print percent). With 2.0, if only
        some questions have an answer, also `"answerable_exact_match"`, `"answerable_f1"` and
        `"unanswerable_exact_match"`.

    ```python
    import keras_attention as ka

    scores = ka.training.score_answers(
        ["the cat", "in a hat", ""], [["cat", "a black cat"], ["the hat"], []]
    )
    assert round(scores["exact_match"], 3) == 0.667 and round(scores["f1"], 3) == 0.889
    assert scores["unanswerable_exact_match"] == 1.0
    ```
    """
    if version not in VERSIONS:
        raise ValueError(f"version={version!r}: expected one of {', '.join(VERSIONS)}.")
    if len(predictions) != len(answers) or not predictions:
        raise ValueError(f"{len(predictions)} predictions and {len(answers)} lists of answers.")
    rows = []
    for prediction, texts in zip(predictions, answers, strict=True):
        if isinstance(texts, str):
            raise ValueError(f"{texts[:40]!r} is one answer: pass a list of them.")
        true = [text for text in texts if version == "1.1" or normalize_answer(text)]
        true, answerable = true or [""], bool(true)
        exact = max(compute_exact_match(prediction, text) for text in true)
        f1 = max(compute_answer_f1(prediction, text, version) for text in true)
        rows.append((exact, f1, answerable))
    scores = {"exact_match": _mean(r[0] for r in rows), "f1": _mean(r[1] for r in rows)}
    kinds = {kind: [row for row in rows if row[2] is kind] for kind in (True, False)}
    if version == "2.0" and all(kinds.values()):
        scores |= {
            "answerable_exact_match": _mean(row[0] for row in kinds[True]),
            "answerable_f1": _mean(row[1] for row in kinds[True]),
            "unanswerable_exact_match": _mean(row[0] for row in kinds[False]),
        }
    return scores


def find_threshold(scores, missing):
    """Find the threshold with the highest mean score, like the official script of SQuAD 2.0.

    It lies halfway between two questions, so that no answer depends on rounding.

    Args:
        scores: list of (score of the answer, score of no answer), each from 0 to 1.
        missing: list of float, for each question how much likelier the model finds "no answer".
            Above the threshold no answer is given.

    Returns:
        (the threshold, the mean score with it).

    ```python
    from keras_attention.training.scores.answers import find_threshold

    assert find_threshold([(1.0, 0.0), (0.0, 1.0)], [-2.0, 3.0]) == (0.5, 1.0)
    ```
    """
    total = sum(none for _, none in scores)  # with a threshold below all: no question has one
    best, threshold = total, min(missing, default=0.0) - 1.0
    order = sorted(range(len(scores)), key=lambda i: missing[i])
    for place, i in enumerate(order):
        total += scores[i][0] - scores[i][1]
        higher = missing[order[place + 1]] if place + 1 < len(order) else missing[i] + 2.0
        if higher > missing[i] and total > best:
            best, threshold = total, (missing[i] + higher) / 2
    return threshold, best / max(1, len(scores))


def _mean(values):
    values = list(values)
    return sum(values) / len(values)
