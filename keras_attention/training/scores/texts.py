"""Scores of generated text, such as translations: BLEU, chrF, ROUGE, exact match, error rates."""

from keras_attention.files.extras import import_extra


def score_texts(name, written, targets):
    """Score generated strings against target strings.

    Args:
        name: str, the scorer. `"exact_match"` and `"rouge"` return scores from 0 to 1, `"bleu"`
            from 0 to 100. `"translation"` calls `score_translations`. `"error_rates"` computes the
            word and the character error rate.
        written, targets: lists of str of equal length. For `"bleu"` and `"exact_match"` a target
            may also be a tuple of alternative strings.

    Returns:
        A dict {name of a score: float}.
    """
    if name == "bleu":
        return _compute_bleu(written, targets)
    if name == "rouge":
        return _compute_rouge(written, targets)
    if name == "translation":
        return score_translations(written, targets)
    if name == "error_rates":
        return {
            "word_error_rate": round(compute_word_error_rate(targets, written), 6),
            "character_error_rate": round(compute_character_error_rate(targets, written), 6),
        }
    return {"exact_match": _compute_exact_match(written, targets)}


def check_scorer(name):
    """Raise an ImportError if the library is missing that `score_texts(name, ...)` needs.

    Call this function before training, so that the evaluation at the end cannot fail for this
    reason.
    """
    if name == "bleu":
        _import_sacrebleu()
    if name == "rouge":
        _make_rouge()


def score_translations(written, targets):
    """Score translations by chrF (Popović, 2015), and by the fraction of exact matches.

    Args:
        written: list of str, the translations.
        targets: list of str, one reference per translation.

    Returns:
        A dict of `exact_match`, from 0 to 1, and `chrf`, from 0 to 100.

    Raises:
        ValueError: the lists are empty or differ in length.

    ```python
    import keras_attention as ka

    scores = ka.training.score_translations(["zwei", "drei"], ["zwei", "frei"])
    assert scores["exact_match"] == 0.5 and 50 < scores["chrf"] < 90
    ```
    """
    sacrebleu = _import_sacrebleu()
    written, targets = list(written), list(targets)
    if len(written) != len(targets) or not targets:
        raise ValueError(
            f"{len(written)} translations and {len(targets)} references: expected one reference "
            "for each translation, and at least one."
        )
    chrf = sacrebleu.corpus_chrf(written, [targets]).score
    return {"exact_match": _compute_exact_match(written, targets), "chrf": round(chrf, 4)}


def compute_word_error_rate(references, hypotheses):
    """Return the word error rate (WER) of transcripts of speech.

    The rate is the number of wrong, missing and extra words, divided by the number of words in the
    references.

    Args:
        references: list of str, the true transcripts.
        hypotheses: list of str, the predicted transcripts, in the same order. Words are separated
            by spaces. Case and punctuation matter.

    Returns:
        A float, 0 for perfect transcripts. Extra words can make it larger than 1.

    ```python
    import keras_attention as ka

    rate = ka.training.compute_word_error_rate(["one two three", "four"], ["one too three", "four"])
    assert rate == 1 / 4
    ```
    """
    return float(_import_jiwer(references, hypotheses).wer(list(references), list(hypotheses)))


def compute_character_error_rate(references, hypotheses):
    """Return the character error rate (CER) of transcripts of speech.

    The rate is the number of wrong, missing and extra characters, including spaces, divided by the
    number of characters in the references. `references` are the true and `hypotheses` the predicted
    transcripts, lists of str.
    """
    return float(_import_jiwer(references, hypotheses).cer(list(references), list(hypotheses)))


def _list_references(targets):
    return (targets,) if isinstance(targets, str) else tuple(targets)


def _compute_exact_match(written, targets):
    pairs = zip(written, map(_list_references, targets), strict=True)
    right = sum(one in references for one, references in pairs)
    return round(right / len(targets), 6)


def _compute_bleu(written, targets):
    """Return a dict with the BLEU of a corpus by sacreBLEU (Post, 2018), with and without case."""
    bleu = _import_sacrebleu().corpus_bleu
    every = list(map(_list_references, targets))
    most = max(map(len, every))
    references = [[one[k] if k < len(one) else None for one in every] for k in range(most)]
    lower = bleu(written, references, lowercase=True)
    return {
        "bleu": round(bleu(written, references).score, 4),
        "bleu_lowercase": round(lower.score, 4),
    }


def _compute_rouge(written, targets):
    """Return a dict with the mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) by KerasHub."""
    scores = {}
    for name, metric in _make_rouge().items():
        metric.update_state(targets, written)
        scores[name] = round(float(metric.result()["f1_score"]), 6)
    return scores


def _make_rouge():
    import_extra("rouge_score", "ROUGE", "rouge-score", "nlp")  # KerasHub needs it
    hub = import_extra("keras_hub", "ROUGE", "KerasHub", "nlp").metrics
    return {"rouge_1": hub.RougeN(order=1), "rouge_2": hub.RougeN(order=2), "rouge_l": hub.RougeL()}


def _import_jiwer(references, hypotheses):
    """Return the library jiwer, after a check that there are as many references as hypotheses."""
    if len(references) != len(hypotheses):
        raise ValueError(
            f"{len(references)} references and {len(hypotheses)} hypotheses: expected one "
            "hypothesis for each reference."
        )
    if not any(map(str.strip, references)):
        raise ValueError("No reference has a word, but error rates need words in the references.")
    return import_extra("jiwer", "An error rate", "jiwer", "speech")


def _import_sacrebleu():
    return import_extra("sacrebleu", "A score of translations", "sacreBLEU", "nlp")
