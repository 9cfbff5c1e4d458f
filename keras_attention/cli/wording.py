"""Scores of texts that were written beside those that were wanted."""


def check(name):
    """Says at once, and not after the training, if what computes the score is not installed."""
    if name == "bleu":
        _sacrebleu()


def score(name, written, wanted):
    """{name: score} by `"exact_match"`, a share, or by `"bleu"`, from 0 to 100.

    Args:
        name: str.
        written, wanted: lists of str.
    """
    if name == "bleu":
        return _bleu(written, wanted)
    right = sum(one == other for one, other in zip(written, wanted, strict=True))
    return {"exact_match": round(right / len(wanted), 6)}


def _bleu(written, wanted):
    """sacreBLEU (Post, 2018) of the whole, with its own tokens, and the same in lower case."""
    bleu = _sacrebleu().corpus_bleu
    lower = bleu(written, [wanted], lowercase=True)
    return {
        "bleu": round(bleu(written, [wanted]).score, 4),
        "bleu_lowercase": round(lower.score, 4),
    }


def _sacrebleu():
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "Translations are scored by sacreBLEU, which is not installed: "
            "pip install 'keras_attention[nlp]'."
        ) from error
    return sacrebleu
