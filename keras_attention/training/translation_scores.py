"""Scores of short translations: chrF, as sacreBLEU counts it, and how many are exact."""


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
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            f"ka.training.score_translations needs sacreBLEU ({error}). "
            "Install it with: pip install 'keras-attention-zoo[nlp]'"
        ) from error
    written, wanted = list(written), list(wanted)
    if len(written) != len(wanted) or not wanted:
        raise ValueError(
            f"{len(written)} translations and {len(wanted)} references: expected as many of each, "
            "and some."
        )
    right = sum(one == other for one, other in zip(written, wanted, strict=True))
    chrf = sacrebleu.corpus_chrf(written, [wanted]).score
    return {"exact_match": round(right / len(wanted), 6), "chrf": round(chrf, 4)}
