"""`TextClassifier`: texts, and a label for each."""

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.labels import balance_classes, check_top, classify, make_accuracy
from keras_attention.tasks.runners import ROWS
from keras_attention.tasks.text_task import TextTask
from keras_attention.training.scores.class_scores import score_labels


class TextClassifier(TextTask):
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

    @classmethod
    def check_manifest(cls, fields):
        """Refuses no manifest: all is in the preprocessor's entry."""

    @classmethod
    def read_settings(cls, manifest):
        return {}

    @property
    def settings(self):
        return {"labels": list(self.preprocessor.labels.names)}

    def make_training_batches(self, examples, recipe):
        options = {"shuffle": True, "seed": recipe.seed}
        return data.batches(examples, self.preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        with prefix_errors(where):
            return data.batches(examples, self.preprocessor, ROWS) if examples else None

    def make_job(self, train, dev, recipe):
        labels = self.preprocessor.labels
        job = super().make_job(train, dev, recipe)
        return balance_classes(
            job, recipe, lambda: labels.ids([label for _, label in train]), len(labels)
        )

    def make_metrics(self):
        return [make_accuracy]

    def compute_scores(self, examples, where):
        with prefix_errors(where):
            actual = self.preprocessor.labels.ids([label for _, label in examples])
            logits = self.compute_all_logits([text for text, _ in examples])
        return score_labels(self.preprocessor.labels.names, logits.argmax(axis=-1), actual)

    def predict(self, inputs, *, top=None):
        """The labels of texts.

        Args:
            inputs: list of str.
            top: int, how many labels of each; None for the best alone.

        Returns:
            For each text a `Classification`; with `top` a list of them, the likeliest first.
        """
        check_many(inputs, "text", of="texts")
        check_top(top)
        return classify(self.preprocessor.labels.names, self.compute_all_logits(inputs), top)

    def describe_labels(self, logits):
        return self.preprocessor.names([logits])[0]
