"""Examples of a `Source`, for the commands that train and evaluate."""

import warnings

from keras_attention.cli.printing import say
from keras_attention.data.problems import SkippedWarning


def load_examples(source, builder):
    """Load the data of a `Source`, and print which examples are skipped.

    Returns:
        (data set, list of sentences for the card that say how many are skipped).
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SkippedWarning)
        loaded = source.load(builder)
    skipped = []
    for warning in caught:
        if issubclass(warning.category, SkippedWarning):
            say(str(warning.message))
            skipped.append(str(warning.message).partition("\n")[0])
        else:
            place = warning.filename, warning.lineno
            warnings.warn_explicit(warning.message, warning.category, *place)
    return loaded, skipped
