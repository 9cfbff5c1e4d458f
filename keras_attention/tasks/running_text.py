"""`RunningTextTask`: what tasks share whose examples are text, and no list."""

from keras_attention import training
from keras_attention.data.readers.corpus import split_text
from keras_attention.tasks.task import DEV_FRACTION, Task


class RunningTextTask(Task):
    """A task whose examples are text: a str, or a list of them, which are one after another."""

    example_kind, holds = str, "running text"
    unit = "characters"
    lower_is_better = True

    @classmethod
    def collect(cls, examples):
        text = examples if isinstance(examples, str) else "\n".join(examples)
        return split_text(text, dev_fraction=0)

    def hold_out(self, train, dev, seed):
        """The last tenth of the text."""
        data_set = split_text(train, dev, dev_fraction=DEV_FRACTION)
        return data_set.train, data_set.dev


def make_perplexity():
    """The metric that chooses the epoch."""
    return training.MaskedPerplexity(name="perplexity")
