"""Plain text to tokens: for classifying texts, and for trying a tagger on a sentence."""

import re

PATTERN = r"\w+(?:[-'’.,:@/]\w+)*|([^\w\s])\1*"
_TOKEN = re.compile(PATTERN)


def split_words(text):
    """Splits at spaces and around punctuation; `3.5`, `e-mail` and `don't` stay whole.

    For scripts that are written with spaces. Where scores matter, use the tokens of the data the
    model was trained on: treebanks also split words, such as `don't` into `do` and `n't`.

    Example:

    ```python
    import keras_attention as ka

    assert ka.data.split_words("Wait... it's 3.5%!") == ["Wait", "...", "it's", "3.5", "%", "!"]
    ```
    """
    return [match.group() for match in _TOKEN.finditer(text)]
