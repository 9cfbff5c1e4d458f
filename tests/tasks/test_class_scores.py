"""F1 of each class, the confusion matrix, and `balance`, of every task with labels."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.jobs import draw_confusion, list_classes
from keras_attention.cli.show import show_classes
from keras_attention.export.card import write_classes
from keras_attention.tasks import recipes

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
# 7 of 8 texts are "ham", so that a model that always predicts "ham" has an accuracy of 7/8.
TEXTS = [ka.data.Text("so long", "ham")] * 7 + [ka.data.Text("win a prize", "spam")]
CONFUSION = {"ham": {"ham": 7}, "spam": {"ham": 1}}


class Constant:
    """A runner whose logits are the same for every example or token."""

    def __init__(self, name, logits, axes=1):
        self.inputs, self.logits, self.axes = {name: "int32"}, logits, axes

    def __call__(self, inputs):
        shape = next(iter(inputs.values())).shape[: self.axes]
        return {"logits": np.broadcast_to(np.float32(self.logits), (*shape, len(self.logits)))}


@pytest.fixture(scope="module")
def texts():
    return ka.tasks.TextClassifier.from_data(TEXTS, **SIZE)


@pytest.fixture
def scores(texts):
    texts.runner = Constant("token_ids", [1.0, 0.0])
    yield texts.evaluate(TEXTS)
    del texts.runner


def test_class_scores_reveal_a_model_that_always_predicts_one_class(scores):
    assert scores == {"accuracy": 0.875, "macro_f1": pytest.approx(0.466667)}
    assert scores.classes["ham"] == {
        "precision": 0.875,
        "recall": 1.0,
        "f1": pytest.approx(0.933333),
        "count": 7,
    }
    assert scores.classes["spam"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}
    assert scores.confusion == CONFUSION


def test_class_scores_are_printed_written_and_drawn(scores, capsys, tmp_path):
    show_classes(scores)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ham", "87.50", "%", "100.00", "%", "93.33", "%", "7"] in lines
    assert ["spam", "ham", "1", "1"] in lines
    assert draw_confusion(scores, tmp_path) == "confusion.png"
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")
    text = write_classes(scores, "confusion.png")
    assert "| spam | 0.00 % | 0.00 % | 0.00 % | 1 |" in text
    assert "- spam predicted as ham: 1 of 1" in text and "(confusion.png)" in text
    assert list_classes(scores) == {
        "classes": scores.classes,
        "confusion": CONFUSION,
    }
    bleu = {"bleu": 20.0}
    assert list_classes(bleu) == {} and write_classes(bleu) == ""
    assert draw_confusion(bleu, tmp_path) is None


def test_entities_have_scores_by_type_and_tags_a_confusion_matrix():
    train = [ka.data.Sentence(("Ada", "ran"), ("B-name", "O"))] * 3
    train += [ka.data.Sentence(("Bonn", "ran"), ("B-town", "O"))]
    task = ka.tasks.SequenceLabeler.from_data(train, **SIZE)
    names = list(task.preprocessor.labels.names)
    task.runner = Constant("token_ids", [float(name == "B-name") for name in names], axes=2)
    scores = task.evaluate(train)
    assert list(scores) == ["entity_f1", "accuracy", "macro_f1"]
    assert scores.classes == {
        "name": {"precision": 0.375, "recall": 1.0, "f1": pytest.approx(0.545455), "count": 3},
        "town": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1},
    }
    assert scores["macro_f1"] == pytest.approx(0.545455 / 2, abs=1e-6)
    assert scores.confusion == {
        "B-name": {"B-name": 3},
        "B-town": {"B-name": 1},
        "O": {"B-name": 4},
    }


def test_texts_with_several_labels_have_scores_by_label():
    train = [ka.data.MultiLabelText("a joy", ("joy",)), ka.data.MultiLabelText("an hour", ())] * 2
    task = ka.tasks.MultiLabelClassifier.from_data(train, **SIZE)
    task.runner = Constant("token_ids", [9.0])
    scores = task.evaluate(train)
    assert scores.classes["joy"]["precision"] == 0.5 and scores.classes["joy"]["count"] == 2
    assert scores.confusion is None and list(list_classes(scores)) == ["classes"]


def make_images():
    pixels = np.zeros((8, 8, 8, 1), "uint8")
    return ka.data.ImageSplit.collect(
        train=(pixels, np.array([0] * 7 + [1])), dev=(pixels, np.zeros(8, int)), labels=["a", "b"]
    )


TAGGED = [ka.data.Sentence(("so",) * 7 + ("win",), ("X",) * 7 + ("Y",))]


@pytest.mark.parametrize(
    ("task_class", "make"),
    [
        (ka.tasks.TextClassifier, lambda: ka.data.Text.collect(TEXTS, TEXTS)),
        (ka.tasks.SequenceLabeler, lambda: ka.data.Sentence.collect(TAGGED, TAGGED)),
        (ka.tasks.ImageClassifier, make_images),
    ],
)
def test_rare_classes_weigh_more_with_balance(task_class, make):
    data = make()
    task = task_class.from_data(data, **SIZE)
    assert task.make_job(data.train, data.dev, task.recipe).loss.class_weights is None
    recipe = recipes.replace_numbers(task.recipe, task.builder, {"balance": 1.0})
    job = task.make_job(data.train, data.dev, recipe)
    assert job.loss.class_weights == pytest.approx([4 / 7, 4.0])  # 7 and 1 of 8: the mean is 1
    next(iter(job.train))  # the number only changes the loss
    half = recipes.replace_numbers(task.recipe, task.builder, {"balance": 0.5})
    weights = task.make_job(data.train, data.dev, half).loss.class_weights
    assert weights[1] / weights[0] == pytest.approx(7**0.5)
