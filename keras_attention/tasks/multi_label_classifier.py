"""`MultiLabelClassifier`: texts, and any number of labels for each."""

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.labels import Classification, check_top
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
from keras_attention.training.scores.class_scores import ClassScores, score_each

THRESHOLD = 0.5  # of a label, until `fit` has chosen one
# Of `find_label_thresholds`: of 0, 0.2, 0.5, 0.7 and 1 the best by cross-validation on the
# development part of GoEmotions (macro-F1 0.469 on the other half, in place of 0.458).
SHRINKAGE = 0.7


class MultiLabelClassifier(Task):
    """Labels texts with any number of labels, none included: emotions, topics, keywords.

    Each label is a decision of its own: it is given where its probability is above its threshold.
    `fit` chooses the thresholds on the development part, each for the highest F1 of its label, in
    part as the model expects it, so that few examples of a rare label do not decide alone.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, num_classes), as
            `ka.models.text_classifier`.
        preprocessor: `ka.data.TextPreprocessor`.
        thresholds: list of float, one for each label, from 0 to 1; None for 0.5.

    Beside those of a `TextClassifier`, its recipe has the number `balance`: a label that is true
    for n of N training texts weighs (N / n - 1) ** balance where it is true. 0 weighs all the same,
    and 1 gives true and false labels the same sum.

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
    both, none = task.predict(["a joy and a surprise", "a film of two hours"])
    assert {found.label for found in both} == {"joy", "surprise"} and none == []
    ```
    """

    builders = ("multi_label_classifier",)
    example_kind, holds = data.MultiLabelText, "texts with lists of labels"
    example, predict_options, rows = EXAMPLE, ("top",), ROWS
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

    @classmethod
    def read_settings(cls, fields):
        count = len(fields.texts("labels"))
        return {"thresholds": fields.numbers("thresholds", count, least=0, most=1)}

    @property
    def settings(self):
        labels = list(self.preprocessor.labels.names)
        return {"labels": labels, "thresholds": list(self.thresholds)}

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
        """Chooses the threshold of each label for its highest F1 on examples."""
        if not examples:
            return
        labels = self.preprocessor.labels.encode_sets([labels for _, labels in examples])
        found = training.find_label_thresholds(labels, self.compute_shares(examples), SHRINKAGE)
        self.thresholds = tuple(round(float(threshold), 6) for threshold in found)

    def compute_shares(self, examples, where="The dev part"):
        """Compute the probabilities (n, L) of all labels, of a list of `MultiLabelText`."""
        with prefix_errors(where):
            return self._compute_shares([text for text, _ in examples])

    def _compute_shares(self, texts):
        logits = np.asarray(self.compute_logits(texts), "float64")
        return 1 / (1 + np.exp(-np.clip(logits, -100, 100)))

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
        """Return the labels of texts.

        Args:
            inputs: list of str.
            top: int, gives so many labels of each, whatever their thresholds; None for those whose
                probability is above theirs.

        Returns:
            For each text a list of `Classification`, the likeliest first.
        """
        check_many(inputs, "text", of="texts")
        check_top(top)
        names, found = self.preprocessor.labels.names, []
        for shares in self._compute_shares(inputs):
            order = [int(i) for i in np.argsort(-shares, kind="stable")]
            chosen = [i for i in order if shares[i] > self.thresholds[i]]
            chosen = chosen if top is None else order[:top]
            found.append([Classification(names[i], float(shares[i])) for i in chosen])
        return found

    def describe_labels(self, logits):
        """Return the labels of one row of logits, as one str."""
        shares = 1 / (1 + np.exp(-np.asarray(logits, "float64")))
        given = [
            name
            for name, share, threshold in zip(
                self.preprocessor.labels, shares, self.thresholds, strict=True
            )
            if share > threshold
        ]
        return ", ".join(given) or "no label"
