"""Word and character error rates of transcripts, as jiwer counts them."""


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


def _check(references, hypotheses):
    if len(references) != len(hypotheses) or not any(map(str.strip, references)):
        raise ValueError(
            f"{len(references)} references and {len(hypotheses)} hypotheses: expected as many of "
            "each, and words in some reference."
        )


def _import_jiwer(function):
    try:
        import jiwer
    except ImportError as error:
        raise ImportError(
            f"ka.training.{function} needs jiwer ({error}). "
            "Install it with: pip install 'keras-attention-zoo[speech]'"
        ) from error
    return jiwer
