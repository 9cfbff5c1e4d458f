"""Scores of written texts beside right ones: BLEU, chrF, ROUGE, exact match, word and character
error rates, by the libraries that the field compares with.
"""


def score_texts(name, written, wanted):
    """{name: score} of texts.

    Args:
        name: `"exact_match"` and `"rouge"` are shares, `"bleu"` goes from 0 to 100; `"translation"`
            is `score_translations`, `"error_rates"` are those of words and characters.
        written, wanted: lists of str. For BLEU and exact matches a text that is wanted may be a
            tuple of several, any of which is right.
    """
    if name == "bleu":
        return _compute_bleu(written, wanted)
    if name == "rouge":
        return _compute_rouge(written, wanted)
    if name == "translation":
        return score_translations(written, wanted)
    if name == "error_rates":
        return {
            "word_error_rate": round(compute_word_error_rate(wanted, written), 6),
            "character_error_rate": round(compute_character_error_rate(wanted, written), 6),
        }
    return {"exact_match": _compute_exact_match(written, wanted)}


def check_scorer(name):
    """Raises before a training if the library that computes its score is not installed."""
    if name == "bleu":
        _import_sacrebleu("score_texts")
    if name == "rouge":
        _make_rouge()


def score_translations(written, wanted):
    """chrF of a corpus (Popović, 2015), from 0 to 100, and the share that is exactly right.

    Args:
        written, wanted: lists of str, as many of each: translations, and references.

    Returns:
        dict of `exact_match` and `chrf`.

    Example:

    ```python
    import keras_attention as ka

    scores = ka.training.score_translations(["zwei", "drei"], ["zwei", "frei"])
    assert scores["exact_match"] == 0.5 and 50 < scores["chrf"] < 90
    ```
    """
    sacrebleu = _import_sacrebleu("score_translations")
    written, wanted = list(written), list(wanted)
    if len(written) != len(wanted) or not wanted:
        raise ValueError(
            f"{len(written)} translations and {len(wanted)} references: expected as many of each, "
            "and some."
        )
    chrf = sacrebleu.corpus_chrf(written, [wanted]).score
    return {"exact_match": _compute_exact_match(written, wanted), "chrf": round(chrf, 4)}


def compute_word_error_rate(references, hypotheses):
    """The words wrong, missing or too many, per word of the references (Levenshtein, 1966).

    Args:
        references, hypotheses: lists of str, as many of each: what was said, and what was heard.
            Words are what is between spaces; capitals and signs count.

    Returns:
        float, 0 for a perfect transcript. It exceeds 1 where more is heard than was said.

    Example:

    ```python
    import keras_attention as ka

    rate = ka.training.compute_word_error_rate(["one two three", "four"], ["one too three", "four"])
    assert rate == 1 / 4
    ```
    """
    jiwer = _import_jiwer("compute_word_error_rate")
    _check(references, hypotheses)
    return float(jiwer.wer(list(references), list(hypotheses)))


def compute_character_error_rate(references, hypotheses):
    """The same of characters, those between words included.

    Args:
        references, hypotheses: as of `compute_word_error_rate`.

    Example:

    ```python
    import keras_attention as ka

    assert ka.training.compute_character_error_rate(["four"], ["for"]) == 1 / 4
    ```
    """
    jiwer = _import_jiwer("compute_character_error_rate")
    _check(references, hypotheses)
    return float(jiwer.cer(list(references), list(hypotheses)))


def _list_references(wanted):
    return (wanted,) if isinstance(wanted, str) else tuple(wanted)


def _compute_exact_match(written, wanted):
    pairs = zip(written, map(_list_references, wanted), strict=True)
    right = sum(one in others for one, others in pairs)
    return round(right / len(wanted), 6)


def _compute_bleu(written, wanted):
    """sacreBLEU (Post, 2018) of the whole, with its own tokens, and the same in lower case."""
    bleu = _import_sacrebleu("score_texts").corpus_bleu
    every = list(map(_list_references, wanted))
    most = max(map(len, every))
    references = [[one[k] if k < len(one) else None for one in every] for k in range(most)]
    lower = bleu(written, references, lowercase=True)
    return {
        "bleu": round(bleu(written, references).score, 4),
        "bleu_lowercase": round(lower.score, 4),
    }


def _compute_rouge(written, wanted):
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) by keras_hub, means over the texts."""
    found = {}
    for name, metric in _make_rouge().items():
        metric.update_state(wanted, written)
        found[name] = round(float(metric.result()["f1_score"]), 6)
    return found


def _make_rouge():
    try:
        import rouge_score  # noqa: F401  what keras_hub computes with
        from keras_hub.metrics import RougeL, RougeN
    except ImportError as error:
        raise ImportError(
            "Summaries are scored by keras_hub and rouge-score, which are not installed: "
            "pip install 'keras-attention-zoo[nlp]'."
        ) from error
    return {"rouge_1": RougeN(order=1), "rouge_2": RougeN(order=2), "rouge_l": RougeL()}


def _check(references, hypotheses):
    if len(references) != len(hypotheses):
        raise ValueError(
            f"{len(references)} references and {len(hypotheses)} hypotheses: expected as many of "
            "each."
        )
    if not any(map(str.strip, references)):
        raise ValueError("No reference has a word: an error rate is of the words that were said.")


def _import_sacrebleu(function):
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            f"ka.training.{function} needs sacreBLEU ({error}). "
            "Install it with: pip install 'keras-attention-zoo[nlp]'"
        ) from error
    return sacrebleu


def _import_jiwer(function):
    try:
        import jiwer
    except ImportError as error:
        raise ImportError(
            f"ka.training.{function} needs jiwer ({error}). "
            "Install it with: pip install 'keras-attention-zoo[speech]'"
        ) from error
    return jiwer
