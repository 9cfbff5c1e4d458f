"""`MultiLabelClassifier`: predicts any number of labels for each text."""

import numpy as np

from keras_attention import data, training
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.labels import Classification
from keras_attention.tasks.text_task import LabelTask
from keras_attention.training.scores.class_scores import ClassScores, score_each

THRESHOLD = 0.5  # threshold of every label before `fit` chooses the thresholds
# Argument of `find_label_thresholds`. It is the best of the values 0, 0.2, 0.5, 0.7 and 1 in a
# cross-validation on the development split of GoEmotions (macro-F1 0.469 instead of 0.458).
SHRINKAGE = 0.7


class MultiLabelClassifier(LabelTask):
    """Predicts any number of labels (or none) for each text: emotions, topics, keywords.

    A label is predicted if its probability is above its threshold, regardless of the other labels.
    `fit` replaces the thresholds with those that maximize the F1 of each label on the development
    split, a part of the training data if none is given. A rare label has too few examples for a
    reliable choice. So each threshold is then moved towards the value that would be best if each
    predicted probability were exactly the share of texts with the label.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to logits (B, num_classes),
            such as `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`.
        thresholds: list of float from 0 to 1, one for each label. None sets them to 0.5.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    `from_data` and `fit` have the hyperparameter `balance`, with another meaning than in
    `TextClassifier`. If n of N training examples have a label, the loss of these n examples for
    this label is multiplied by (N / n - 1) ** balance. With 0 all examples have the same weight.
    With 1 the examples with and without the label have the same total weight.

    Example:

    ```python
    import keras_attention as ka

    train = [
        ka.data.MultiLabelText("a joy and a surprise", ("joy", "surprise")),
        ka.data.MultiLabelText("a joy to watch", ("joy",)),
        ka.data.MultiLabelText("a film of two hours", ()),
    ] * 20
    task = ka.tasks.MultiLabelClassifier.from_data(train, num_heads=2, hidden_dim=16, dropout=0.0)
    task.fit(train, epochs=6, batch_size=8, learning_rate=0.02, verbose=False)
    first, second = task.predict(["a joy and a surprise", "a film of two hours"])
    assert {label.label for label in first} == {"joy", "surprise"} and second == []
    ```
    """

    builders = ("multi_label_classifier",)
    example_kind, holds = data.MultiLabelText, "text with lists of labels"
    example = "Thank you so much, that made my day!"

    def __init__(self, model, preprocessor, *, thresholds=None, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        count = len(preprocessor.labels)
        thresholds = [THRESHOLD] * count if thresholds is None else list(thresholds)
        if len(thresholds) != count or not all(0 <= x <= 1 for x in thresholds):
            raise ValueError(
                f"thresholds={thresholds!r:.60}: expected {count} numbers from 0 to 1, one for "
                "each label."
            )
        self.thresholds = tuple(float(threshold) for threshold in thresholds)

    @classmethod
    def read_settings(cls, fields):
        count = len(fields.texts("labels"))
        return {"thresholds": fields.numbers("thresholds", count, least=0, most=1)}

    @property
    def settings(self):
        return super().settings | {"thresholds": list(self.thresholds)}

    def with_labels(self, labels):
        self.thresholds = (THRESHOLD,) * len(labels)
        return super().with_labels(labels)

    def make_loss(self, recipe, train):
        weights, balance = None, recipe.data.balance
        if balance:
            sets = self.preprocessor.labels.encode_sets([labels for _, labels in train])
            least = 1 / (1 + len(train))
            shares = np.clip(sets.sum(axis=0) / len(train), least, 0.5)
            weights = ((1 / shares - 1) ** balance).tolist()
        return training.MultiLabelCrossentropy(weights, recipe.label_smoothing)

    def make_metrics(self):
        count = len(self.preprocessor.labels)
        return [lambda: training.MacroF1(count)]

    def tune(self, examples):
        """Choose the threshold of each label from its F1 on `examples`, the development split."""
        if not examples:
            return
        labels = self.preprocessor.labels.encode_sets([labels for _, labels in examples])
        thresholds = training.find_label_thresholds(
            labels, self.compute_shares(examples), SHRINKAGE
        )
        self.thresholds = tuple(round(float(threshold), 6) for threshold in thresholds)

    def compute_shares(self, examples, where="The dev part"):
        """Return the probability of each label for n texts, an array (n, number of labels).

        `examples` is a list of n `MultiLabelText`. Error messages begin with `where`, a str.
        """
        with prefix_errors(where):
            return _sigmoid(self.compute_logits([text for text, _ in examples]))

    def compute_scores(self, examples, where):
        if not examples:
            return {}
        labels = self.preprocessor.labels.encode_sets([labels for _, labels in examples])
        predicted = self.compute_shares(examples, where) > np.array(self.thresholds)
        scores = training.score_label_sets(labels, predicted)
        counts = (x.sum(axis=0) for x in (labels, predicted, labels * predicted))
        classes = score_each(self.preprocessor.labels.names, *counts)
        return ClassScores({name: round(score, 6) for name, score in scores.items()}, classes)

    def predict(self, inputs, *, top=None):
        """Predict the labels of each text.

        Args:
            inputs: list of str.
            top: int, the number of labels to return for each text, regardless of the thresholds.
                None returns the labels whose probability is above their threshold.

        Returns:
            A list with one list of `Classification` for each text, the most probable label first.
        """
        return super().predict(inputs, top=top)

    def choose_labels(self, logits, top):
        """Convert logits (n, number of labels) to the labels that `predict` returns for n strings.

        `top` is the number of labels for each string. None returns the labels whose probability is
        above their threshold.
        """
        names, answers = self.preprocessor.labels.names, []
        for shares in _sigmoid(logits):
            order = [int(i) for i in np.argsort(-shares, kind="stable")]
            above = [i for i in order if shares[i] > self.thresholds[i]]
            chosen = above if top is None else order[:top]
            answers.append([Classification(names[i], float(shares[i])) for i in chosen])
        return answers

    def describe_labels(self, logits):
        """Return the predicted labels of one text as a str, for the title of a figure.

        `logits` (number of labels,) are the outputs of the model for this text.
        """
        (labels,) = self.choose_labels(logits[None], None)
        names = {label.label for label in labels}
        return ", ".join(name for name in self.preprocessor.labels if name in names) or "no label"


def _sigmoid(logits):
    return 1 / (1 + np.exp(-np.clip(np.asarray(logits, "float64"), -100, 100)))
