"""`RunningTextTask`: what tasks share whose examples are text, and no list."""

from keras_attention import data, training
from keras_attention.data.readers.corpus import make_corpus
from keras_attention.tasks.task import DEV_FRACTION, Task


class RunningTextTask(Task):
    """A task whose examples are text: a str, or a list of them, which are one after another."""

    data_class, holds = data.Corpus, "running text"
    lower_is_better = True

    @classmethod
    def collect(cls, examples):
        text = examples if isinstance(examples, str) else "\n".join(examples)
        return make_corpus(text, "", "", dev_fraction=0)

    @classmethod
    def list_file_options(cls, source):
        return "running text", ("encoding",)

    @classmethod
    def read_files(cls, source):
        return data.from_plain_text(**source.files, **source.encodings)

    @classmethod
    def count_examples(cls, data_set):
        parts = {part: getattr(data_set, part) for part in ("train", "dev", "test")}
        return {f"{part} characters": len(text) for part, text in parts.items() if text}

    def hold_out(self, train, dev, seed):
        """The last tenth of the text."""
        corpus = make_corpus(train, dev, "", dev_fraction=DEV_FRACTION)
        return corpus.train, corpus.dev


def make_perplexity():
    """The metric that chooses the epoch."""
    return training.MaskedPerplexity(name="perplexity")
