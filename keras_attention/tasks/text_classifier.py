"""`TextClassifier`: texts, and a label for each."""

import numpy as np

from keras_attention import data, models, visualization
from keras_attention.data.files import prefix_errors
from keras_attention.export import inspection
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import (
    classify,
    compute_label_scores,
    load_preprocessor,
    make_accuracy,
)
from keras_attention.tasks.printing import format_percent, show_table
from keras_attention.tasks.task import Task

PICTURED = range(7, 15)  # words of a text whose picture is easy to read
SHOWN = 60  # characters of a text beside its label
ROWS = 64  # texts that are scored at a time


PREPROCESSORS = (data.TextPreprocessor, data.SubwordTextPreprocessor)


class TextClassifier(Task):
    """Labels texts: sentiment, topic, intent.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, num_classes), as
            `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`, or `ka.data.SubwordTextPreprocessor` for a model
            that began as a checkpoint.

    Example:

    ```python
    import keras_attention as ka

    train = [ka.data.Text("a joy to watch", "good"), ka.data.Text("a real bore", "bad")] * 20
    task = ka.tasks.TextClassifier.from_data(train, num_heads=2, hidden_dim=16, dropout=0.0)
    task.fit(train, epochs=4, batch_size=8, learning_rate=0.02, verbose=False)
    (found,) = task.predict(["a joy"])
    assert found.label == "good" and found.probability > 0.5
    ```
    """

    builders = ("text_classifier",)
    data_class, holds, example = data.Texts, "texts with labels", "A film to remember."
    predict_options = ("top",)

    @classmethod
    def collect(cls, examples):
        return data.Texts.from_lists(train=list(examples), dev_fraction=0)

    @classmethod
    def build(cls, data_set, recipe, builder):
        if not data_set.train:
            raise ValueError("There is nothing to train on: give a file with --train.")
        preprocessor = data.TextPreprocessor.build(data_set.train, data_set.labels, **recipe.data)
        model = models.text_classifier(
            len(preprocessor.words), len(preprocessor.labels), **recipe.model
        )
        task = cls(model, preprocessor)
        task.recipe = recipe
        return task

    @classmethod
    def check_manifest(cls, fields):
        """Refuses no manifest: all is in the preprocessor's entry."""

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return load_preprocessor(folder, *PREPROCESSORS)

    @classmethod
    def read_settings(cls, manifest):
        return {}

    @property
    def settings(self):
        return {"labels": list(self.preprocessor.labels.names)}

    @classmethod
    def count_examples(cls, data_set):
        parts = {part: getattr(data_set, part) for part in ("train", "dev", "test")}
        return {f"{part} texts": len(split) for part, split in parts.items() if split}

    def find_labels(self, data_set):
        return data_set.labels

    def describe_data(self, data_set):
        """For the card: how many texts are too long for the model, if any are."""
        limit, unit = self.preprocessor.maximum_length, self.preprocessor.unit
        every = [*data_set.train, *data_set.dev, *data_set.test]
        cut = sum(map(self.preprocessor.is_cut, (text for text, _ in every)))
        return (f"of {cut:,} longer texts only the first {limit} {unit} are used",) if cut else ()

    def make_training_batches(self, examples, recipe):
        options = {"shuffle": True, "seed": recipe.seed}
        return data.text_batches(examples, self.preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        with prefix_errors(where):
            return data.text_batches(examples, self.preprocessor, ROWS) if examples else None

    def make_metrics(self):
        return [make_accuracy]

    def compute_scores(self, examples, where):
        return compute_label_scores(self, examples, where)

    def check_runner(self, path, run):
        inspection.check_sizes(
            run.inspection,
            labels=len(self.preprocessor.labels),
            vocabularies={"token_ids": self.preprocessor.vocabulary_size},
        )

    def predict(self, inputs, *, top=None):
        """The labels of texts.

        Args:
            inputs: list of str.
            top: int, how many labels of each; None for the best alone.

        Returns:
            For each text a `Classification`; with `top` a list of them, the likeliest first.
        """
        if isinstance(inputs, str):
            raise ValueError(f"{inputs[:40]!r} is one text: pass a list of texts.")
        return classify(self, (self.preprocessor([text]) for text in inputs), top)

    def show(self, inputs, *, top=None):
        rows = []
        for text, found in zip(inputs, self.predict(inputs, top=top or 1), strict=True):
            shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
            rows += [(label, format_percent(share), shown) for label, share in found]
        show_table(("label", "probability", "text"), rows)

    def attention(self, example, path=None):
        words = self.preprocessor.split(example)
        with visualization.record_attention(self.model) as maps:
            logits = self.model(self.preprocessor([example]))
        layer, weights = next((p, w) for p, w in reversed(maps.items()) if w.shape[2] == w.shape[3])
        tokens = ["<class>"] * (weights.shape[2] - len(words)) + words
        label = self.preprocessor.names(np.asarray(logits))[0]
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
