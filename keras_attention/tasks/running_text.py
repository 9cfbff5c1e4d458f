"""Functions for tasks whose examples are running text."""

from keras_attention import training
from keras_attention.data.readers.corpus import split_text
from keras_attention.tasks.interface import DEV_FRACTION


def collect_text(examples):
    """Make a data set of running text, of a str or of a list of them in a row."""
    text = examples if isinstance(examples, str) else "\n".join(examples)
    return split_text(text, dev_fraction=0)


def hold_out_text(train, dev):
    """Return (train, dev): without dev, the last tenth of the text becomes it."""
    data_set = split_text(train, dev, dev_fraction=DEV_FRACTION)
    return data_set.train, data_set.dev


def make_perplexity():
    """Return the metric that chooses the epoch."""
    return training.MaskedPerplexity(name="perplexity")
