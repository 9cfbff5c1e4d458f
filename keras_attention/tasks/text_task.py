"""`TextTask`: what tasks share that label whole texts."""

import numpy as np

from keras_attention import data
from keras_attention.core.lazy import models, visualization
from keras_attention.export import inspection
from keras_attention.files.io import number_errors
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import compute_each
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # words of a text whose picture is easy to read


class TextTask(Task):
    """A task of texts, with labels for each of them.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, num_classes), as
            `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`.
    """

    example = "A film to remember."
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
        model = models.text_classifier(
            len(preprocessor.tokenizer), len(preprocessor.labels), **recipe.list_keywords()
        )
        return model, preprocessor, dict()

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TextPreprocessor.load(folder)

    def find_example(self, data_set):
        """A text of the data of a good length."""
        every = [text for text, _ in data_set.test or data_set.dev or data_set.train]
        fitting = (text for text in every if len(self.preprocessor.split(text)) in PICTURED)
        return " ".join(next(fitting, every[0] if every else self.example).split())

    def compute_all_logits(self, texts):
        """Return logits (n, L) of a list of str."""
        run = self.runner  # a file that does not fit is refused before any text
        lengths = [len(ids) for ids in number_errors("Text", texts, self.preprocessor.ids)]
        logits = compute_each(run, self.preprocessor, texts, lengths)
        return np.reshape(logits, (len(texts), len(self.preprocessor.labels)))

    def describe_data(self, data_set):
        """For the card: how many texts are too long for the model, if any are."""
        limit, unit = self.preprocessor.maximum_length, self.preprocessor.unit
        every = [*data_set.train, *data_set.dev, *data_set.test]
        cut = sum(map(self.preprocessor.is_cut, (text for text, _ in every)))
        return (f"of {cut:,} longer texts only the first {limit} {unit} are used",) if cut else ()

    def check_runner(self, path, run):
        inspection.check_sizes(
            run.inspection,
            labels=len(self.preprocessor.labels),
            vocabularies={"token_ids": self.preprocessor.vocabulary_size},
        )

    def describe_labels(self, logits):
        """What logits (L,) say of a text, for the title of a picture."""
        raise NotImplementedError

    def attention(self, example, path=None):
        words = self.preprocessor.split(example)
        with visualization.record_attention(self.model) as maps:
            logits = self.model(self.preprocessor([example]))
        layer, weights = next((p, w) for p, w in reversed(maps.items()) if w.shape[2] == w.shape[3])
        tokens = ["<class>"] * (weights.shape[2] - len(words)) + words
        label = self.describe_labels(np.asarray(logits)[0])
        figure = visualization.attention_map(
            weights[:, :, : max(PICTURED), : max(PICTURED)],
            tokens[: max(PICTURED)],
            title=f"{layer}: what each word looked at; the text was taken for {label}",
            path=path,
        )
        return AttentionMaps(dict(maps), tokens, tokens, figure)

    def draw_examples(self, data_set, folder):
        """Draws the attention of every head of the last block on one test text."""
        every = [text for text, _ in data_set.test or data_set.dev]
        lengths = [len(self.preprocessor.split(text)) for text in every]
        k = next((k for k, length in enumerate(lengths) if length in PICTURED), 0)
        self.attention(every[k], folder / "attention.png")
        return ["attention.png"]
