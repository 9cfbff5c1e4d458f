"""Scores of generated texts: BLEU, chrF, ROUGE, exact match, word and character error rates."""

from keras_attention.files.extras import import_extra


def score_texts(name, written, targets):
    """Return {name: score} for texts.

    Args:
        name: `"exact_match"`, a share; `"rouge"`, shares; `"bleu"`, 0 to 100; `"translation"`, as
            `score_translations`; `"error_rates"` of words and characters.
        written, targets: lists of str. For BLEU and exact matches a target may be a tuple of
            alternatives.
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
    """Raise an ImportError before training if the library for a score is missing."""
    if name == "bleu":
        _import_sacrebleu()
    if name == "rouge":
        _make_rouge()


def score_translations(written, targets):
    """Compute chrF of a corpus (Popović, 2015), from 0 to 100, and the share of exact matches.

    Args:
        written, targets: lists of str of equal length: translations, and references.

    Returns:
        dict of `exact_match` and `chrf`.

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
            f"{len(written)} translations and {len(targets)} references: expected as many of each, "
            "and some."
        )
    chrf = sacrebleu.corpus_chrf(written, [targets]).score
    return {"exact_match": _compute_exact_match(written, targets), "chrf": round(chrf, 4)}


def compute_word_error_rate(references, hypotheses):
    """Compute wrong, missing and extra words per word of the references (Levenshtein, 1966).

    Args:
        references, hypotheses: lists of str of equal length. Words are separated by spaces.
            Capitals and punctuation count.

    Returns:
        float, 0 for perfect transcripts. Extra words can bring it above 1.

    ```python
    import keras_attention as ka

    rate = ka.training.compute_word_error_rate(["one two three", "four"], ["one too three", "four"])
    assert rate == 1 / 4
    ```
    """
    return float(_import_jiwer(references, hypotheses).wer(list(references), list(hypotheses)))


def compute_character_error_rate(references, hypotheses):
    """Compute the same for characters, spaces included.

    ```python
    import keras_attention as ka

    assert ka.training.compute_character_error_rate(["four"], ["for"]) == 1 / 4
    ```
    """
    return float(_import_jiwer(references, hypotheses).cer(list(references), list(hypotheses)))


def _list_references(targets):
    return (targets,) if isinstance(targets, str) else tuple(targets)


def _compute_exact_match(written, targets):
    pairs = zip(written, map(_list_references, targets), strict=True)
    right = sum(one in references for one, references in pairs)
    return round(right / len(targets), 6)


def _compute_bleu(written, targets):
    """Compute sacreBLEU (Post, 2018) of the corpus, with its own tokens, also in lower case."""
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
    """Compute F1 of ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) with keras_hub, means over texts."""
    scores = {}
    for name, metric in _make_rouge().items():
        metric.update_state(targets, written)
        scores[name] = round(float(metric.result()["f1_score"]), 6)
    return scores


def _make_rouge():
    import_extra("rouge_score", "ROUGE", "rouge-score", "nlp")  # keras_hub computes with it
    hub = import_extra("keras_hub", "ROUGE", "KerasHub", "nlp").metrics
    return {"rouge_1": hub.RougeN(order=1), "rouge_2": hub.RougeN(order=2), "rouge_l": hub.RougeL()}


def _import_jiwer(references, hypotheses):
    """Check references and hypotheses, and import jiwer."""
    if len(references) != len(hypotheses):
        raise ValueError(
            f"{len(references)} references and {len(hypotheses)} hypotheses: expected as many of "
            "each."
        )
    if not any(map(str.strip, references)):
        raise ValueError("No reference has a word: error rates are per word of the references.")
    return import_extra("jiwer", "An error rate", "jiwer", "speech")


def _import_sacrebleu():
    return import_extra("sacrebleu", "A score of translations", "sacreBLEU", "nlp")
