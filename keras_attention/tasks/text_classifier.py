"""`TextClassifier`: predicts a label for each text."""

from keras_attention import data
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.labels import classify, make_accuracy, make_balanced_loss
from keras_attention.tasks.text_task import LabelTask
from keras_attention.training.scores.class_scores import score_labels


class TextClassifier(LabelTask):
    """Predicts one label for each text: sentiment, topic, intent.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to logits (B, num_classes),
            such as `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import keras_attention as ka

    train = [ka.data.Text("a joy to watch", "good"), ka.data.Text("a real bore", "bad")] * 20
    task = ka.tasks.TextClassifier.from_data(train, num_heads=2, hidden_dim=16, dropout=0.0)
    task.fit(train, epochs=4, batch_size=8, learning_rate=0.02, verbose=False)
    (prediction,) = task.predict(["a joy"])
    assert prediction.label == "good" and prediction.probability > 0.5
    ```
    """

    builders = ("text_classifier",)
    example_kind, holds = data.Text, "text with labels"

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
        """Return the most probable label, or the `top` most probable labels, of each text.

        Args:
            inputs: list of str.
            top: int, the number of labels to return for each text. None returns only the most
                probable label.

        Returns:
            A list with a `Classification` for each text. If `top` is an int, each element is
            instead a list of `top` `Classification`s, sorted by decreasing probability.
        """
        return super().predict(inputs, top=top)

    def choose_labels(self, logits, top):
        """Convert logits (n, num_classes) to the labels that `predict` returns for n strings.

        `top` is the argument of `predict`.
        """
        return classify(self.preprocessor.labels.names, logits, top)

    def describe_labels(self, logits):
        """Return the most probable label of one text, for the title of a figure.

        `logits` (num_classes,) are the outputs of the model for this text.
        """
        return self.preprocessor.names([logits])[0]
