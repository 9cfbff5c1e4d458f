"""`TextTask` and `LabelTask`: base classes of tasks whose input is a text."""

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import models
from keras_attention.export import inspection
from keras_attention.files.io import number_errors
from keras_attention.tasks.explaining import RecordedExample
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.labels import check_top
from keras_attention.tasks.runners import ROWS, compute_each
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # numbers of words for which the attention map is easy to read


class TextTask(Task):
    """Base class of tasks with one output for a text, the first field of an example.

    The preprocessor is a `TextReader` (`data/preprocessors/text.py`).
    """

    example, rows = "A film to remember.", ROWS

    def find_example(self, data_set):
        text = self._find_text(data_set.test or data_set.dev or data_set.train)
        return " ".join((text or self.example).split())

    def find_pictured(self, data_set):
        return self._find_text(data_set.test or data_set.dev)

    def _find_text(self, examples):
        """Return a text whose attention map is easy to read, or None without examples.

        This is the first text whose length is in `PICTURED`, or else the first text.
        """
        texts = [example[0] for example in examples]
        fitting = (text for text in texts if len(self.preprocessor.split(text)) in PICTURED)
        return next(fitting, texts[0] if texts else None)

    def list_texts(self, examples):
        """Return a list of the texts in raw examples that the model reads."""
        return [example[0] for example in examples]

    def describe_data(self, data_set):
        preprocessor = self.preprocessor
        parts = data_set.parts.values()
        count = sum(preprocessor.is_cut(text) for part in parts for text in self.list_texts(part))
        if not count:
            return ()
        limit = f"{preprocessor.maximum_length} {preprocessor.unit}"
        return (f"only the first {limit} of {count:,} long examples are used",)

    def check_inputs(self, inputs):
        check_many(inputs, "text", of="str")
        list(number_errors("Text", inputs, self.preprocessor.ids))

    def compute_outputs(self, texts):
        """Return a list with the output of the model (D,) for each str in `texts`."""
        lengths = [len(ids) for ids in number_errors("Text", texts, self.preprocessor.ids)]
        return compute_each(self.runner, self.preprocessor, texts, lengths)

    def record(self, text):
        """Run the model on `text`, one str, and return a `RecordedExample` with the tokens."""
        if not isinstance(text, str):
            raise ValueError(f"attention takes one text, not a {type(text).__name__}.")
        words = self.preprocessor.split(text)
        recorded = RecordedExample.run(self.model, self.preprocessor([text]))
        length = next(iter(recorded.maps.values())).shape[3]
        return recorded._replace(tokens=["<class>"] * (length - len(words)) + words)

    def attention(self, example, path=None):
        recorded = self.record(example)
        maps, tokens = recorded.maps, recorded.tokens
        layer = next(path for path, w in reversed(maps.items()) if w.shape[2] == w.shape[3])
        caption = f"what each word attended to{self.describe_output(recorded.logits[0])}"
        return draw_map(maps, tokens, tokens, caption, path, layer=layer, most=max(PICTURED))

    def describe_output(self, output):
        """Return the end of the title of a figure: the output (D,) for a text, as a str."""
        return ""


class LabelTask(TextTask):
    """Base class of text classification tasks.

    Subclasses define `choose_labels`, which converts logits to predictions, and `describe_labels`,
    which returns the labels of one text as a str.
    """

    predict_options = ("top",)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        preprocessor = data.TextPreprocessor.build(
            data_set.train,
            data_set.labels,
            min_count=options.min_count,
            max_size=options.max_size,
            lowercase=options.lowercase,
            maximum_length=options.max_length,
        )
        sizes = len(preprocessor.tokenizer), len(preprocessor.labels)
        return models.text_classifier(*sizes, **recipe.list_keywords()), preprocessor, {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TextPreprocessor.load(folder)

    @property
    def settings(self):
        return {"labels": list(self.preprocessor.labels.names)}

    def check_runner(self, path, run):
        inspection.check_sizes(
            run.inspection,
            labels=len(self.preprocessor.labels),
            vocabularies={"token_ids": self.preprocessor.vocabulary_size},
        )

    def compute_logits(self, texts):
        """Return the logits (n, num_classes) for `texts`, a list of n str."""
        logits = self.compute_outputs(texts)
        return np.reshape(logits, (len(texts), len(self.preprocessor.labels)))

    def predict(self, inputs, *, top=None):
        check_many(inputs, "text", of="str")
        check_top(top)
        return self.choose_labels(self.compute_logits(inputs), top)

    def record_example(self, example):
        return self.record(example).with_labels(self.preprocessor.labels.names)

    def describe_output(self, output):
        return f"; prediction: {self.describe_labels(output)}"
