"""`TextClassifier`: texts, and a label for each."""

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.labels import check_top, classify, make_accuracy, make_balanced_loss
from keras_attention.tasks.runners import ROWS
from keras_attention.tasks.task import Task
from keras_attention.tasks.texts import (
    EXAMPLE,
    check_text_runner,
    compute_text_logits,
    describe_cut_texts,
    draw_text,
    find_text,
    make_text_parts,
)
from keras_attention.training.scores.class_scores import score_labels


class TextClassifier(Task):
    """Labels texts: sentiment, topic, intent.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, num_classes), as
            `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`.

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
    example_kind, holds = data.Text, "texts with labels"

    example, predict_options, rows = EXAMPLE, ("top",), ROWS

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        return make_text_parts(data_set, recipe)

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TextPreprocessor.load(folder)

    def find_example(self, data_set):
        texts = [text for text, _ in data_set.test or data_set.dev or data_set.train]
        return " ".join((find_text(self.preprocessor, texts) or self.example).split())

    def find_pictured(self, data_set):
        return find_text(self.preprocessor, [text for text, _ in data_set.test or data_set.dev])

    def describe_data(self, data_set):
        return describe_cut_texts(self.preprocessor, data_set)

    def check_runner(self, path, run):
        check_text_runner(self.preprocessor, run)

    def attention(self, example, path=None):
        return draw_text(self, example, self.describe_labels, path)

    def compute_logits(self, texts):
        """Logits (n, L) of a list of str."""
        return compute_text_logits(self.runner, self.preprocessor, texts)

    @property
    def settings(self):
        return {"labels": list(self.preprocessor.labels.names)}

    def make_loss(self, recipe, train):
        labels = self.preprocessor.labels
        names = [label for _, label in train]
        return make_balanced_loss(recipe, lambda: labels.ids(names), len(labels))

    def make_metrics(self):
        return [make_accuracy]

    def compute_scores(self, examples, where):
        with prefix_errors(where):
            actual = self.preprocessor.labels.ids([label for _, label in examples])
            logits = self.compute_logits([text for text, _ in examples])
        return score_labels(self.preprocessor.labels.names, logits.argmax(axis=-1), actual)

    def predict(self, inputs, *, top=None):
        """Return the labels of texts.

        Args:
            inputs: list of str.
            top: int, how many labels of each; None for the best alone.

        Returns:
            For each text a `Classification`; with `top` a list of them, the likeliest first.
        """
        check_many(inputs, "text", of="texts")
        check_top(top)
        return classify(self.preprocessor.labels.names, self.compute_logits(inputs), top)

    def describe_labels(self, logits):
        """Return the label of one row of logits."""
        return self.preprocessor.names([logits])[0]
